//! Nothing is cut off at the edges of a page or picture.

use ferry_trace::Trace;
use ferry_trace::sample::copy_of;
use serde_json::json;

use crate::browser::Browser;
use crate::page::foreign;

const SIZES: [(u32, u32); 4] = [(1280, 800), (1920, 1080), (800, 600), (360, 740)];

fn number(browser: &mut Browser, expression: &str) -> f64 {
    browser.is(expression).as_f64().unwrap()
}

/// Makes every text of a trace long.
fn lengthy(mut trace: Trace, word: &str) -> Trace {
    trace.about.command.extend((0..40).map(|index| format!("--{word}={index}")));
    trace.threads[0].name = word.repeat(20);
    trace
}

#[test]
fn the_page_scrolls_sideways_at_no_width() {
    let Some(mut browser) = Browser::started() else { return };
    browser.call("Emulation.setScrollbarsHidden", &json!({"hidden": false}));
    for trace in [copy_of(300), lengthy(foreign(), "option")] {
        for (width, height) in SIZES {
            browser.window(width, height, false);
            browser.open(&trace);
            browser.until("document.querySelectorAll('#summary table').length >= 3");
            let beyond = number(
                &mut browser,
                "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.documentElement)",
            );
            assert!(beyond <= 0.0, "{beyond} at {width}");
        }
    }
    browser.assert_content();
}

#[test]
fn times_of_the_axis_are_whole_and_beside_each_other() {
    let Some(mut browser) = Browser::started() else { return };
    for (width, height) in SIZES {
        browser.window(width, height, false);
        browser.open(&copy_of(3_000));
        browser.is("{
            window.labels = [];
            const fillText = axisContext.fillText;
            axisContext.fillText = function (text, x, y) {
                labels.push([x, x + this.measureText(text).width]);
                fillText.call(this, text, x, y);
            };
        }");
        for step in 0..60 {
            let drawn = format!(
                "labels.length = 0, view.show({step} * 4321, trace.end * 0.8 ** {step} + {step} * 4321), drawAxis(),
                 [labels.filter(([from, to], i) => from < 0 || to > view.width || (i > 0 && from < labels[i - 1][1])), labels.length > 0]"
            );
            assert_eq!(browser.is(&drawn), json!([[], true]), "{width} {step}");
        }
    }
    browser.assert_content();
}

#[test]
fn texts_of_the_picture_are_within_it() {
    let Some(mut browser) = Browser::started() else { return };
    for word in ["option", "WWWWWW", "\u{6f22}\u{5b57}", "ill"] {
        for trace in [copy_of(3), copy_of(500), foreign()] {
            browser.open_picture(&lengthy(trace, word));
            let wrong = "[...document.querySelectorAll('text')].filter((text) => {
                const { x, width } = text.getBBox();
                return x < 0 || x + width > 720;
            }).map((text) => text.textContent)";
            assert_eq!(browser.is(wrong), json!([]), "{word}");
            let title = browser.is("[...document.querySelectorAll('.title')].at(-1).textContent");
            assert!(title.as_str().unwrap().ends_with('\u{2026}'), "{title}");
        }
    }
}
