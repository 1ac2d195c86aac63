use super::*;
use crate::options::{Backend, Options};

#[test]
fn a_limit_that_is_not_reached_leaves_no_timer() {
    let options = Options { backend: Backend::Posix, ..Options::default() };
    let (left, _) = crate::run(&options, async |_| {
        let long = Duration::from_secs(3600);
        let timers = || worker::current().timers.borrow().queue.len();
        timeout(long, async {
            assert_eq!(timers(), 1);
            let mut sleeper = Box::pin(sleep(long));
            std::future::poll_fn(|cx| Poll::Ready(sleeper.as_mut().poll(cx).is_ready())).await;
            assert_eq!(timers(), 2);
            Ok(())
        })
        .await?;
        Ok::<_, Error>(timers())
    })
    .unwrap();
    assert_eq!(left, Ok(0));
}
