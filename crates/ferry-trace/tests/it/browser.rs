//! A headless browser, driven by the DevTools protocol over two pipes. Messages are JSON, each ended by a zero byte.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ferry_trace::Trace;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Maximum time until a page is ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Events that show a fault of a page, or code injected by a trace.
const UNWANTED: [&str; 4] =
    ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening"];

pub(crate) struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
    session: Option<String>,
    /// Unwanted events so far.
    pub(crate) said: Vec<Value>,
    loaded: bool,
    place: TempDir,
}

/// The browser, by Debian's name for it and others.
fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut programs = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    programs.find(|program| program.is_file())
}

impl Browser {
    /// Starts a browser; prints a SKIP line and returns `None` if there is none.
    pub(crate) fn started() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("SKIP: there is no chromium");
            return None;
        };
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // The browser reads and writes its descriptors 3 and 4, which only a shell can set up without unsafe code.
        let mut child = Command::new("timeout")
            .args(["300", "sh", "-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Self { child, to, from, last: 0, session: None, said: Vec::new(), loaded: false, place };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let targets = self.call("Target.getTargets", &json!({}));
        let mut targets = targets["targetInfos"].as_array().unwrap().iter();
        let page = targets.find(|target| target["type"] == "page").unwrap();
        let wanted = json!({"targetId": page["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", &wanted)["sessionId"].as_str().unwrap().to_owned();
        self.session = Some(session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, &json!({}));
        }
        self.window(1400, 900, false);
    }

    /// Calls a method and waits for its result. Events received meanwhile are recorded.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).unwrap();
        to.flush().unwrap();
        loop {
            let answer = self.message();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        self.loaded |= method == "Page.loadEventFired";
        if UNWANTED.contains(&method) {
            self.said.push(message["params"].clone());
        }
        message
    }

    /// Sets the window's size in CSS pixels, and the preferred colour scheme.
    pub(crate) fn window(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// Opens a trace's page, waits until it is drawn, and returns its size in bytes.
    pub(crate) fn open(&mut self, trace: &Trace) -> u64 {
        let path = self.place.path().canonicalize().unwrap().join("page.html");
        let mut out = BufWriter::new(File::create(&path).unwrap());
        ferry_trace::export::html(trace, &mut out).unwrap();
        drop(out);
        self.go_to(&path);
        self.until("document.documentElement.dataset.ready === 'true'");
        // Makes the exports of all scripts available to the expressions of tests.
        self.is("void Object.assign(globalThis, ...Object.values(scripts))");
        path.metadata().unwrap().len()
    }

    /// Opens a trace's picture.
    pub(crate) fn open_picture(&mut self, trace: &Trace) {
        let path = self.place.path().canonicalize().unwrap().join("picture.svg");
        let mut out = BufWriter::new(File::create(&path).unwrap());
        ferry_trace::export::svg(trace, &mut out).unwrap();
        drop(out);
        self.go_to(&path);
    }

    fn go_to(&mut self, path: &Path) {
        self.loaded = false;
        self.call("Page.navigate", &json!({"url": format!("file://{}", path.display())}));
        while !self.loaded {
            self.message();
        }
    }

    /// Evaluates an expression.
    pub(crate) fn is(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        let began = Instant::now();
        while self.is(expression) != true {
            assert!(began.elapsed() < PATIENCE, "{expression} is not true; said: {:?}", self.said);
            sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key. A single letter is typed.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let text = if key == "Enter" { "\r" } else { text };
        let code = if key == "Enter" { 13 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Types a text.
    pub(crate) fn write(&mut self, text: &str) {
        text.chars().for_each(|letter| self.press(&letter.to_string()));
    }

    /// Sends a mouse event at a position of the window.
    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64, more: &Value) {
        let mut event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
        more.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Visible text of an element.
    pub(crate) fn words(&mut self, id: &str) -> String {
        self.is(&format!("document.getElementById('{id}').innerText")).as_str().unwrap().to_owned()
    }

    /// Asserts that nothing has gone wrong so far.
    pub(crate) fn assert_content(&self) {
        assert!(self.said.is_empty(), "{:#?}", self.said);
    }
}

impl Drop for Browser {
    /// The browser ends when its pipe is closed.
    fn drop(&mut self) {
        self.to = None;
        let ended = self.child.wait();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}
