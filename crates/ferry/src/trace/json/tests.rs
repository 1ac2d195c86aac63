use ferry_trace::model::{Role, Thread};
use ferry_trace::sample;
use serde_json::{Value, json};

use super::of;

#[test]
fn the_answer_is_in_numbers() {
    let mut trace = sample::copy_of(24);
    trace.fibers[1].name = "photos".to_owned();
    let shown: Value = serde_json::from_str(&of(&trace)).unwrap();
    let answer = &shown["answer"];
    let in_flight = json!({
        "metadata": { "time_ns": 141_075, "share": 0.783 },
        "write": { "time_ns": 96_278, "share": 0.534 },
        "read": { "time_ns": 71_146, "share": 0.395 },
    });
    assert_eq!(answer["in_flight"], in_flight);
    assert_eq!(answer["most_in_flight"], 6);
    let busy =
        json!({ "of": "workers", "threads": 2, "time_ns": 298_878, "lived_ns": 360_000, "share": 0.83 });
    assert_eq!(answer["busy"], busy);
    let wait = &answer["longest_wait"];
    assert_eq!(*wait, shown["longest"][0]);
    assert_eq!((&wait["took_ns"], &wait["path"]), (&json!(17_432), &json!("photos/file 21")));
    assert_eq!((&wait["route"], &wait["reason"]), (&json!("pool"), &json!("recently-slow")));
}

#[test]
fn pool_threads_are_listed_and_summed_up() {
    let mut trace = sample::copy_of(24);
    trace.threads.push(Thread { tid: 15, role: Role::Pool, name: "pool 1".to_owned() });
    let shown: Value = serde_json::from_str(&of(&trace)).unwrap();
    assert_eq!(shown["threads"].as_array().unwrap().len(), 4);
    let pool = &shown["pool_threads"];
    assert_eq!((&pool["threads"], &pool["operations"]), (&json!(2), &json!(24)));
    assert_eq!((&pool["busy_ns"], &pool["lived_ns"]), (&json!(206_436), &json!(360_000)));
    // The operations of the sample's only pool thread overlap.
    let shares = ["least_share", "median_share", "most_share"].map(|name| pool[name].as_f64().unwrap());
    assert_eq!(shares, [0.0, 0.0, 1.146]);
}

#[test]
fn offsets_and_requests_of_devices_are_in_it() {
    let shown: Value = serde_json::from_str(&of(&sample::copy_of(24))).unwrap();
    assert_eq!(shown["devices"], Value::Null);
    let mut trace = sample::with_device(sample::copy_of(24));
    trace.device_requests[0].completed = None;
    let shown: Value = serde_json::from_str(&of(&trace)).unwrap();
    let devices = &shown["devices"];
    let read = &devices["requests"][0];
    assert_eq!((&read["device"], &read["kind"]), (&json!("vda"), &json!("read")));
    assert_eq!((&read["requests"], &read["without_completion"]), (&json!(24), &json!(1)));
    assert_eq!((&read["bytes"], &read["times"]["count"]), (&json!(24 * 4_096), &json!(23)));
    let both = devices["both_in_flight_ns"].as_u64().unwrap();
    assert!(both > 0 && both <= devices["in_flight_ns"].as_u64().unwrap(), "{devices}");
    let longest = shown["longest"].as_array().unwrap();
    let offset = |kind: &str| longest.iter().find(|its| its["kind"] == kind).map(|its| its["offset"].clone());
    assert_eq!(offset("stat"), Some(Value::Null));
    assert!(offset("write").is_some_and(|offset| offset.as_u64().is_some_and(|offset| offset % 4_096 == 0)));
}
