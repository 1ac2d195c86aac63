"""Checks a trace with Perfetto's own classes, and prints one line for each count."""

import collections
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

MONOTONIC, REALTIME = protos.BUILTIN_CLOCK_MONOTONIC, protos.BUILTIN_CLOCK_REALTIME
EVENT = protos.TrackEvent


def check(held, *what):
    if not held:
        sys.exit(" ".join(map(str, ("wrong:",) + what)))


class Strings:
    """Interned strings of the packets read so far."""

    def __init__(self):
        self.known = collections.defaultdict(dict)

    def learn(self, data):
        for field, entries in data.ListFields():
            for entry in entries:
                check(entry.iid not in self.known[field.name], field.name, entry.iid, "told twice")
                text = getattr(entry, "name", None) or getattr(entry, "str", None)
                self.known[field.name][entry.iid] = text

    def of(self, field, number):
        check(number in self.known[field], field, number, "was not told")
        return self.known[field][number]


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    trace = protos.Trace.FromString(data)
    check(trace.ByteSize() == len(data), "the file has bytes that mean nothing")
    return trace.packet


def check_head(first):
    clocks = {clock.clock_id: clock.timestamp for clock in first.clock_snapshot.clocks}
    check(set(clocks) == {MONOTONIC, REALTIME}, "clocks", clocks)
    check(first.clock_snapshot.primary_trace_clock == MONOTONIC, "primary clock")
    check(first.trace_packet_defaults.timestamp_clock_id == MONOTONIC, "default clock")
    check(first.sequence_flags == protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, "first packet's flags")
    return clocks


def check_tracks(packets):
    tracks = {}
    for packet in packets:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            check(track.uuid and track.uuid not in tracks, "track", track.uuid)
            check(not track.parent_uuid or track.parent_uuid in tracks, "a parent comes after its child")
            check(track.HasField("process") or track.parent_uuid, "track of nobody", track.uuid)
            tracks[track.uuid] = track
    processes = [track for track in tracks.values() if track.HasField("process")]
    check(len(processes) == 1, "processes", len(processes))
    threads = [track.thread for track in tracks.values() if track.HasField("thread")]
    check(len({thread.tid for thread in threads}) == len(threads), "two threads of one number")
    check(all(thread.pid == processes[0].process.pid for thread in threads), "threads of another process")
    return tracks


def name_of(event, strings):
    check(event.HasField("name") != event.HasField("name_iid"), "an event has two names or none")
    return event.name if event.HasField("name") else strings.of("event_names", event.name_iid)


def said_of(event, strings):
    said = {}
    for annotation in event.debug_annotations:
        name = strings.of("debug_annotation_names", annotation.name_iid)
        kind = annotation.WhichOneof("value")
        check(kind is not None, name, "has no value")
        value = getattr(annotation, kind)
        if kind == "string_value_iid":
            value = strings.of("debug_annotation_string_values", value)
            value = value.decode() if isinstance(value, bytes) else value
        said[name] = value
    return said


def check_flows(flows):
    for number, steps in flows.items():
        check(len(steps) >= 2, "flow", number, "has one end:", steps)
        steps = sorted(steps, key=lambda step: step[0])
        check(steps[0][1] == "operation", "flow", number, "begins with", steps[0])
        check([step[2] for step in steps] == [False] * (len(steps) - 1) + [True], "flow", number, steps)


def main(path):
    packets = read(path)
    started = check_head(packets[0])[MONOTONIC]
    tracks = check_tracks(packets)
    strings = Strings()
    counts = collections.Counter()
    last = collections.defaultdict(int)
    open_slices = collections.defaultdict(list)
    flows = collections.defaultdict(list)
    for index, packet in enumerate(packets):
        check(packet.trusted_packet_sequence_id == 1, "packet", index, "is of another sequence")
        check(index == 0 or packet.sequence_flags == protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE, "flags")
        strings.learn(packet.interned_data)
        if not packet.HasField("track_event"):
            continue
        event, at = packet.track_event, packet.timestamp
        check(event.track_uuid in tracks, "no track", event.track_uuid)
        track = tracks[event.track_uuid]
        check(at >= started, "before the recording")
        if event.type == EVENT.TYPE_COUNTER:
            check(track.HasField("counter") and event.HasField("counter_value"), "a counter elsewhere")
            counts["sample of " + track.name] += 1
            continue
        check(not track.HasField("counter"), "no counter on a counter's track")
        if event.type != EVENT.TYPE_INSTANT:
            check(at >= last[event.track_uuid], "time runs backwards on", track.name)
            last[event.track_uuid] = at
        if event.type == EVENT.TYPE_SLICE_END:
            check(open_slices[event.track_uuid], "a slice ends that did not begin, on", track.name)
            name, began = open_slices[event.track_uuid].pop()
            if name == "asleep":
                counts["nanoseconds asleep"] += at - began
            continue
        check(event.type in (EVENT.TYPE_SLICE_BEGIN, EVENT.TYPE_INSTANT), "type", event.type)
        check(len(event.category_iids) == 1, "categories")
        category = strings.of("event_categories", event.category_iids[0])
        name, said = name_of(event, strings), said_of(event, strings)
        check(name, "an event without a name")
        if event.type == EVENT.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((name, at))
        for ids, is_last in ((event.flow_ids, False), (event.terminating_flow_ids, True)):
            for number in ids:
                flows[number].append((at, category, is_last))
        counts[category] += 1
        if category == "operation":
            counts["operation " + name] += 1
            counts["route " + said["route"]] += 1
            counts["bytes"] += said.get("size", 0)
            counts["failed"] += "errno" in said
            check(said["reason"], "no reason")
        elif category == "submission":
            counts["submitted"] += said["requests"]
        elif name == "task work":
            counts["task work, " + said["cause"]] += 1
        elif category == "thread" or category == "part":
            counts[category + " " + name] += 1
        elif category == "recording":
            print(said["command"].encode().hex(), "command")
    left = {tracks[track].name: names for track, names in open_slices.items() if names}
    check(not left, "slices without an end:", left)
    check_flows(flows)
    counts["flow"] = len(flows)
    counts["thread track"] = sum(track.HasField("thread") for track in tracks.values())
    for what, count in sorted(counts.items()):
        print(count, what)


main(sys.argv[1])
