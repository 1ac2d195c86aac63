use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::cells::{Workload, cells};
use super::content::{Content, Stamped};
use super::http::{Download, Rest, Url, rest};
use super::rates::Rate;
use super::server::{CREDIT, Server, next_due};
use super::sink::{Sink, SinkOptions, Source, pour};
use super::{Write, beside_published};
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::{Need, has_direct_io, ring};
use crate::record::tests::record;
use crate::record::{Figures, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Write.spec().parameters, &given, Scale::Default).unwrap()
}

fn stop() -> Stop {
    Stop::on_signals().unwrap()
}

#[test]
fn only_plain_http_is_understood() {
    let parsed =
        |text: &str| Url::parse(text).map(|url| (url.host, url.path)).map_err(|error| error.to_string());
    let url = |host: &str, path: &str| Ok((host.to_owned(), path.to_owned()));
    assert_eq!(parsed("http://a.b/c/d.iso?x=1#top"), url("a.b:80", "/c/d.iso?x=1"));
    assert_eq!(parsed("http://[::1]:8080"), url("[::1]:8080", "/"));
    assert_eq!(parsed("http://[::1]/x"), url("[::1]:80", "/x"));
    for (text, why) in [
        ("https://a.b/c", "it must begin with http://"),
        ("http:///c", "it needs a host, without a user"),
        ("http://me@a.b/", "it needs a host, without a user"),
        ("http://a.b/c d", "it has a space in it"),
    ] {
        assert_eq!(parsed(text), Err(format!("invalid URL '{text}': {why}")));
        assert_eq!(Write.needs(&settings(&[("url", text)])).unwrap_err().exit_code(), 2);
    }
}

#[test]
fn an_answers_end_is_known_from_its_head() {
    let of = |lines: &[&str]| rest(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
    let ok = "HTTP/1.1 200 OK";
    assert_eq!(of(&[ok, "content-LENGTH:  17 "]), Ok(Rest::Bytes(17)));
    assert_eq!(of(&[ok]), Ok(Rest::All));
    assert_eq!(of(&[ok, "Content-Length: 17", "Transfer-Encoding: Chunked"]), Ok(Rest::Chunk(0)));
    for (lines, why) in [
        (&[ok, "Transfer-Encoding: gzip, chunked"][..], "the server sends it as 'gzip, chunked'"),
        (&[ok, "Content-Length: -1"], "the server reports '-1' bytes"),
        (&["HTTP/1.0 404 Not Found"], "the server answers 'HTTP/1.0 404 Not Found'"),
        (
            &["HTTP/1.1 301 Moved", "Location: https://a.b/"],
            "the server answers 'HTTP/1.1 301 Moved', which names https://a.b/",
        ),
        (&["SSH-2.0-x 200"], "the answer is not HTTP"),
        (&[], "the answer is not HTTP"),
    ] {
        assert_eq!(of(lines), Err(why.to_owned()));
    }
}

/// Python's server, which sends the files of its folder: with their length, in chunks, or until it closes.
const FOREIGN: &str = r#"
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        name, _, how = self.path.partition('?')
        if not how:
            return super().do_GET()
        content = open('.' + name, 'rb').read()
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked') if how == 'chunks' else None
        self.end_headers()
        self.close_connection = True
        for at in range(0, len(content), 50001):
            piece = content[at:at + 50001]
            self.wfile.write(b'%x;x=y\r\n%s\r\n' % (len(piece), piece) if how == 'chunks' else piece)
        self.wfile.write(b'0\r\nMore: words\r\n\r\n' if how == 'chunks' else b'')
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn every_sink_writes_what_another_server_sends() {
    let place = tempfile::tempdir().unwrap();
    let mut bytes = vec![0; 3 * 65_536 + 4097];
    ferry_tree::fill::fill(5, 0, &mut bytes);
    std::fs::write(place.path().join("source"), &bytes).unwrap();
    let mut command = std::process::Command::new("python3");
    command.args(["-c", FOREIGN]).current_dir(place.path()).stdout(std::process::Stdio::piped());
    let Ok(mut server) = command.spawn() else {
        eprintln!("SKIP: there is no python3");
        return;
    };
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let outcome = std::panic::catch_unwind(|| {
        for (how, size) in [("", Some(200_705)), ("?chunks", None), ("?close", None)] {
            let url = Url::parse(&format!("http://127.0.0.1:{}/source{how}", port.trim())).unwrap();
            for (name, sink) in possible_sinks(place.path()) {
                std::fs::write(place.path().join(name), "").unwrap();
                let download = Download::begin(&url, &stop()).unwrap();
                assert_eq!(download.size, size, "{how}");
                let source = Source::Http(download);
                pour(&SinkOptions { sink, block_bytes: 8192, depth: 4 }, source, place.path(), name).unwrap();
                assert!(std::fs::read(place.path().join(name)).unwrap() == bytes, "{name}{how}");
            }
        }
    });
    server.kill().unwrap();
    server.wait().unwrap();
    outcome.unwrap();
}

/// The sinks that can be had here, but for dd.
fn possible_sinks(place: &std::path::Path) -> Vec<(&'static str, Sink)> {
    let is_possible =
        |sink: Sink| (!sink.is_direct() || has_direct_io(place)) && (!sink.needs_ring() || ring().is_ok());
    Sink::ALL.into_iter().filter(|(_, sink)| *sink != Sink::Dd && is_possible(*sink)).collect()
}

#[test]
fn every_sink_writes_what_the_server_sends() {
    const SIZE: u64 = 3 * 65_536 + 4097;
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(7, SIZE, 0).unwrap();
    let content = Content::Stamped(7, SIZE);
    for (name, sink) in possible_sinks(place.path()) {
        let path = place.path().join(name);
        std::fs::write(&path, "").unwrap();
        let source = Source::Http(Download::begin(&server.url(), &stop()).unwrap());
        pour(&SinkOptions { sink, block_bytes: 8192, depth: 4 }, source, place.path(), name).unwrap();
        content.check(&path, &stop()).unwrap();
    }
    drop(server);
}

#[test]
fn what_differs_is_found() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let mut bytes = vec![0; 300_000];
    assert_eq!(Stamped::new(3, 300_000).next(&mut bytes), 300_000);
    let content = Content::Stamped(3, 300_000);
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        content.check(&path, &stop()).map_err(|error| error.to_string())
    };
    assert_eq!(said(&bytes), Ok(()));
    assert_eq!(said(&bytes[1..]), Err("299999 bytes were written instead of 300000".to_owned()));
    // Two pages that changed places.
    let (one, other) = bytes[..8192].split_at_mut(4096);
    one.swap_with_slice(other);
    assert_eq!(said(&bytes), Err("the written data differs at byte 0".to_owned()));
    bytes[..8192].rotate_left(4096);
    bytes[299_999] ^= 1;
    assert_eq!(said(&bytes), Err("the written data differs at byte 299999".to_owned()));
    let other = place.path().join("other");
    std::fs::copy(&path, &other).unwrap();
    assert!(Content::File(other).check(&path, &stop()).is_ok());
}

#[test]
fn a_hole_is_not_taken_for_zeros() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let said = Content::Zeros(1 << 20).check(&path, &stop()).unwrap_err().to_string();
    assert_eq!(said, "nothing was written at byte 0");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    assert!(Content::Zeros(1 << 20).check(&path, &stop()).is_ok());
}

#[test]
fn a_download_that_ends_early_is_a_failure() {
    for answer in [
        "Content-Length: 10\r\n\r\nfive!",
        "Transfer-Encoding: chunked\r\n\r\na\r\nfive!",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nfive!\r\n",
    ] {
        let (url, server) = once(format!("HTTP/1.1 200 OK\r\n{answer}"));
        let mut download = Download::begin(&url, &stop()).unwrap();
        let said = download.fill(&mut [0; 16]).unwrap_err().to_string();
        assert_eq!(said, format!("cannot download http://{}/: the server ended early", url.host));
        server.join().unwrap();
        let refused = Download::begin(&url, &stop()).map(drop).unwrap_err().to_string();
        // Reset where a process that another test has begun still holds the server's socket for a moment.
        assert!(
            refused.starts_with(&format!("cannot download http://{}/: Connection re", url.host)),
            "{refused}"
        );
    }
    let (url, server) = once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n".to_owned());
    let said = Download::begin(&url, &stop()).map(drop).unwrap_err().to_string();
    assert!(said.ends_with(": a chunk's size is 'no'"), "{said}");
    server.join().unwrap();
}

/// A server that gives one answer, once.
fn once(answer: String) -> (Url, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        assert!(client.read(&mut [0; 4096]).unwrap() > 0);
        client.write_all(answer.as_bytes()).unwrap();
    });
    (url, server)
}

#[test]
fn each_sink_is_a_cell() {
    let all = settings(&[("depths", "4,16")]);
    let names = |rate| -> Vec<String> {
        cells("download", rate, &all).into_iter().map(|(cell, _)| cell.name).collect()
    };
    assert_eq!(names(None).len(), 8);
    assert_eq!(names(None)[2], "download/direct-pipelined/1M/4");
    assert_eq!(names(Some(Rate::OfDevice(50)))[0], "download/50%/control/1M");
    let overwrites = cells("overwrite", None, &all);
    assert_eq!(overwrites.len(), 10);
    // All of 1 GiB in blocks of 1 MiB.
    let (queued, how) = overwrites.iter().find(|(_, how)| how.sink == Sink::RingAll).unwrap();
    assert_eq!((queued.name.as_str(), how.depth), ("overwrite/ring-all/1M", 1024));
    let needs = Write.needs(&settings(&[("url", "http://a/"), ("operations", "download")])).unwrap();
    assert_eq!(needs, [Need::Space { bytes: 0, entries: 2 }]);
    let given = settings(&[("block-sizes", "5000")]);
    assert!(Write.needs(&given).unwrap_err().to_string().starts_with("5000 in '--block-sizes'"));
}

#[test]
fn a_ring_does_not_hold_every_file() {
    let reason = |block: &str| {
        let settings = settings(&[("size", "1G"), ("block-sizes", block)]);
        let cells = cells("overwrite", None, &settings);
        cells.into_iter().find(|(_, how)| how.sink == Sink::RingAll).unwrap().1.too_many_blocks()
    };
    assert_eq!(reason("32K"), None);
    assert_eq!(reason("28K"), Some("a ring has at most 32768 entries; take larger blocks".to_owned()));
}

#[test]
fn the_published_table_stands_beside_ours() {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.cells = cells("overwrite", None, &settings(&[])).into_iter().map(|(cell, _)| cell).collect();
    for (index, seconds) in [(0, 10.0), (1, 10.1), (2, 15.0), (3, 9.0), (4, 12.0)] {
        for round in 0..5 {
            let mut figures =
                Figures::from([("returned_s".to_owned(), seconds), ("durable_s".to_owned(), seconds)]);
            if index == 4 {
                figures.insert("queued_s".to_owned(), 6.0);
            }
            record.cells[index].runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
    }
    let rows = beside_published(&record).rows;
    assert_eq!(rows[3][..3], ["  published", "100", "56.7 s"]);
    assert_eq!(rows[4], ["overwrite/direct/1M", "5", "15.0 s", "15.0 s", "15.0 s", "15.0 s"]);
    assert_eq!(rows[5], ["  published", "100", "76.4 s", "77.6 s", "77.6 s", "77.6 s"]);
    assert_eq!(rows[6][0], "overwrite/direct-pipelined/1M/16");
    assert_eq!(rows[8], ["  until queued", "5", "6.00 s", "6.00 s", "6.00 s", "6.00 s"]);
    assert_eq!(rows.len(), 10);
    let verdicts = Write.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("is slower than plain"), Outcome::Held);
    assert_eq!(outcome("io_uring is as fast"), Outcome::DidNotHold);
    assert_eq!(outcome("dd is as fast"), Outcome::Held);
    assert_eq!(outcome("(by threads)"), Outcome::Held);
    assert_eq!(outcome("(on the ring)"), Outcome::NotMeasured);
    assert!(!verdicts.iter().any(|verdict| verdict.finding.starts_with("download")));
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = settings(&[]);
    let rates = [Rate::Unlimited, Rate::OfDevice(50)].map(Some);
    let downloads = rates.map(|rate| cells("download", rate, &settings)).concat();
    let all = [cells("overwrite", None, &settings), downloads].concat();
    every_verdict_goes_every_way(&Write, all.into_iter().map(|(cell, _)| cell).collect(), settings.values());
}

#[test]
fn a_rate_is_a_percentage_or_bytes_a_second() {
    for (text, rate, name, a_second) in [
        ("0", Rate::Unlimited, "unlimited", 0),
        ("unlimited", Rate::Unlimited, "unlimited", 0),
        ("50%", Rate::OfDevice(50), "50%", 1_000_000),
        ("250%", Rate::OfDevice(250), "250%", 5_000_000),
        ("62M", Rate::Bytes(62 << 20), "62M", 62 << 20),
    ] {
        assert_eq!(Rate::parse(text), Some(rate));
        assert_eq!(Rate::parse(&rate.name()), Some(rate));
        assert_eq!((rate.name().as_str(), rate.bytes_per_second(2_000_000)), (name, a_second));
    }
    let said = Write.needs(&settings(&[("rates", "0,fast")])).unwrap_err().to_string();
    let why = "it must be 0, a percentage such as 50%, or bytes a second";
    assert_eq!(said, format!("invalid value 'fast' for '--rates'; {why}"));
    for text in ["0%", "10001%", "%", ""] {
        assert_eq!(Rate::parse(text), None, "{text}");
    }
    // A repeated rate would be a cell twice.
    assert_eq!(
        Rate::all(&settings(&[("rates", "1M,0,1024K")])).unwrap(),
        [Rate::Bytes(1 << 20), Rate::Unlimited]
    );
}

#[test]
fn a_link_does_not_make_up_for_the_time_in_which_nobody_receives() {
    let (due, takes) = (Instant::now(), Duration::from_millis(4));
    // However short the time is that the server needs, the link takes as long.
    assert_eq!(next_due(due, takes, due), due + takes);
    // A sleep that ended late is made up for, a client that did not receive is not.
    let late = due + takes + CREDIT / 2;
    assert_eq!(next_due(due, takes, late), due + takes);
    let stalled = due + Duration::from_secs(1);
    assert_eq!(next_due(due, takes, stalled), stalled - CREDIT);
}

#[test]
fn downloads_are_compared_at_equal_rates() {
    let mut record = record();
    let settings = settings(&[("sinks", "control,direct")]);
    let of = |rate| cells("download", rate, &settings).into_iter().map(|(cell, _)| cell);
    // Records that were taken before have no rate.
    let all = [None, Some(Rate::Unlimited), Some(Rate::OfDevice(50))];
    record.cells = all.into_iter().flat_map(of).collect();
    let workloads = Workload::all(&record);
    let titles: Vec<String> = workloads.iter().map(Workload::title).collect();
    assert_eq!(
        titles,
        ["download", "download at an unlimited rate", "download at 50 % of the device's rate"]
    );
    assert_eq!(workloads.iter().map(Workload::is_limited).collect::<Vec<_>>(), [false, false, true]);
    for workload in workloads {
        let names: Vec<&str> = workload.cells(&record).map(|cell| cell.name.as_str()).collect();
        let prefix = workload.prefix();
        assert_eq!(names, ["control/1M", "direct/1M"].map(|sink| format!("{prefix}{sink}")));
        let direct = workload.cell(&record, "direct").unwrap();
        assert_eq!(direct.base, Some(format!("{prefix}control/1M")));
    }
}
