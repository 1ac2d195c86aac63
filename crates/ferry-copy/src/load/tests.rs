use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A run that comes to the gate again as soon as it may, while others wait for a part of the time.
struct Simulated {
    policy: Policy,
    begun: Instant,
    now: Instant,
    waited: Duration,
    /// Times at which the total was read.
    readings: Vec<Duration>,
}

impl Simulated {
    fn new(percent: u8) -> Self {
        let (percent, now) = (NonZeroU8::new(percent).unwrap(), Instant::now());
        let (waited, readings) = (Duration::from_secs(1_000), Vec::new());
        Self { policy: Policy::new(percent), begun: now, now, waited, readings }
    }

    fn passed(&self) -> Duration {
        self.now - self.begun
    }

    fn step(&mut self) -> Step {
        let (waited, passed) = (self.waited, self.passed());
        let readings = &mut self.readings;
        self.policy.step(self.now, || {
            readings.push(passed);
            Some([Duration::ZERO, waited, Duration::ZERO])
        })
    }

    fn advance(&mut self, time: Duration, others_percent: u32) {
        self.now += time;
        self.waited += time * others_percent / 100;
    }

    /// Comes to the gate every millisecond of work, for this time. Returns the time of work.
    fn run(&mut self, time: Duration, others_percent: u32) -> Duration {
        let (end, mut work) = (self.now + time, Duration::ZERO);
        while self.now < end {
            match self.step() {
                Step::Work => {
                    work += MILLISECOND;
                    self.advance(MILLISECOND, others_percent);
                }
                Step::Wait(time) => self.advance(time, others_percent),
            }
        }
        work
    }
}

#[test]
fn a_run_is_held_back_for_150_ms_every_2_s_if_no_one_waits() {
    let mut simulated = Simulated::new(1);
    let cycle = PERIOD + WINDOW;
    assert_eq!(simulated.run(cycle * 5, 0), PERIOD * 5);
    let expected: Vec<Duration> =
        (0..5).flat_map(|number| [cycle * number + SETTLE, cycle * number + WINDOW]).collect();
    assert_eq!(simulated.readings, expected);
    assert_eq!(simulated.policy.pauses, Pauses { count: 0, time: Duration::ZERO, measured: 5 });
}

#[test]
fn a_run_works_at_least_250_ms_after_each_pause_of_at_most_2_s() {
    let mut simulated = Simulated::new(50);
    let (mut longest, mut shortest) = (Duration::ZERO, Duration::MAX);
    for _ in 0..10 {
        let held = simulated.now;
        while let Step::Wait(time) = simulated.step() {
            simulated.advance(time, 100);
        }
        longest = longest.max(simulated.now - held);
        let begun = simulated.now;
        while simulated.step() == Step::Work {
            simulated.advance(MILLISECOND, 100);
        }
        shortest = shortest.min(simulated.now - begun);
    }
    assert!(longest <= LONGEST && longest + WINDOW > LONGEST, "{longest:?}");
    assert_eq!(shortest, WORK);
    let Pauses { count, time, measured } = simulated.policy.pauses;
    // The eleventh measurement only holds the run back so far.
    assert_eq!((count, measured), (10, 10));
    assert_eq!(time, (longest - WINDOW) * 10);
}

#[test]
fn a_run_goes_on_in_the_window_in_which_others_end() {
    let mut simulated = Simulated::new(10);
    simulated.run(Duration::from_millis(700), 100);
    let work = simulated.run(PERIOD, 0);
    // The window that ends now is full of their waiting; the next one is not.
    assert_eq!(work + WINDOW, PERIOD);
    let pauses = simulated.policy.pauses;
    assert_eq!(pauses.count, 1);
    assert_eq!(pauses.time, Duration::from_millis(750));
}

#[test]
fn only_more_than_the_percentage_pauses_a_run() {
    for (percent, others, is_paused) in
        [(1, 1, false), (1, 2, true), (50, 50, false), (50, 51, true), (99, 100, true), (100, 100, false)]
    {
        let mut simulated = Simulated::new(percent);
        simulated.run(PERIOD, others);
        assert_eq!(simulated.policy.pauses.count > 0, is_paused, "{percent} %, others {others} %");
    }
}

#[test]
fn what_own_requests_wait_for_before_they_end_does_not_count() {
    let mut simulated = Simulated::new(1);
    assert_eq!(simulated.step(), Step::Wait(SETTLE));
    simulated.advance(SETTLE, 100);
    assert_eq!(simulated.step(), Step::Wait(WINDOW - SETTLE));
    simulated.advance(WINDOW - SETTLE, 0);
    assert_eq!(simulated.step(), Step::Work);
    assert_eq!(simulated.policy.pauses.count, 0);
}

/// Regression: 64 pieces of 2 MiB take a disk of 100 MB/s longer than 30 ms, and counted as others'.
#[test]
fn others_are_measured_once_no_piece_is_in_flight() {
    let mut simulated = Simulated::new(1);
    simulated.policy.in_flight = 64;
    assert_eq!(simulated.step(), Step::Wait(SETTLE));
    for _ in 0..45 {
        simulated.advance(SETTLE, 100);
        assert_eq!(simulated.step(), Step::Wait(SETTLE));
    }
    assert!(simulated.readings.is_empty());
    simulated.policy.in_flight = 0;
    simulated.advance(SETTLE, 100);
    assert_eq!(simulated.step(), Step::Wait(WINDOW - SETTLE));
    simulated.advance(WINDOW - SETTLE, 0);
    assert_eq!(simulated.step(), Step::Work);
    assert_eq!(simulated.policy.pauses.count, 0);
}

#[test]
fn a_piece_that_does_not_end_delays_a_measurement_for_2_s_at_most() {
    let mut simulated = Simulated::new(1);
    simulated.policy.in_flight = 1;
    while let Step::Wait(time) = simulated.step() {
        simulated.advance(time, 100);
    }
    assert_eq!(simulated.readings.first(), Some(&LONGEST));
    let last = simulated.readings.last().copied().unwrap_or_default();
    let paused = last - LONGEST + SETTLE;
    assert!(paused <= LONGEST && paused + WINDOW > LONGEST, "{paused:?}");
    assert_eq!(simulated.policy.pauses.count, 1);
}

#[test]
fn callers_that_come_early_wait_and_read_nothing() {
    let mut simulated = Simulated::new(1);
    assert_eq!(simulated.step(), Step::Wait(SETTLE));
    simulated.advance(MILLISECOND, 0);
    assert_eq!(simulated.step(), Step::Wait(SETTLE - MILLISECOND));
    assert!(simulated.readings.is_empty());
    // Another processor's clock may be behind.
    simulated.now = simulated.begun.checked_sub(MILLISECOND).unwrap_or(simulated.begun);
    assert_eq!(simulated.step(), Step::Wait(SETTLE));
}

#[test]
fn a_total_that_can_not_be_read_pauses_nothing() {
    for readable in 0..4 {
        let (mut policy, begun) = (Policy::new(NonZeroU8::MIN), Instant::now());
        let (mut now, mut readings) = (begun, 0);
        for _ in 0..5 {
            let waited = now - begun;
            let step = policy.step(now, || {
                readings += 1;
                (readings <= readable).then_some([waited; 3])
            });
            match step {
                Step::Wait(time) => now += time,
                Step::Work => break,
            }
        }
        // The reading that fails ends the pause.
        assert_eq!((readings, now - begun <= LONGEST), (readable + 1, true), "{readable} readings");
        assert_eq!(policy.step(now, || None), Step::Work);
    }
}

#[test]
fn a_total_that_goes_back_pauses_nothing() {
    let mut simulated = Simulated::new(1);
    simulated.step();
    simulated.advance(SETTLE, 0);
    simulated.step();
    simulated.waited = Duration::ZERO;
    simulated.advance(WINDOW - SETTLE, 0);
    assert_eq!(simulated.step(), Step::Work);
}
