//! The little of HTTP/1.1 that a download needs (RFC 9112): one GET over plain TCP, an answer that says its length.
//!
//! Own code, because a client library brings TLS and connection pools, and the time that those take would be measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::error::{Failure, quoted};
use crate::stop::Stop;

/// How often a download that gets nothing looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line, and most lines, of an answer's head.
const LONGEST_LINE: u64 = 16 << 10;
const MOST_LINES: usize = 200;

/// Where something is: `http://host[:port]/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// With its port.
    pub(super) host: String,
    pub(super) path: String,
}

impl Url {
    /// Understands a URL.
    ///
    /// # Errors
    /// If it is not one of plain HTTP.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Misuse(format!("invalid URL {}: {why}", quoted(text.as_ref())));
        let rest = text.strip_prefix("http://").ok_or_else(|| wrong("it must begin with http://"))?;
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong("it has a space in it"));
        }
        let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if host.is_empty() || host.contains('@') {
            return Err(wrong("it needs a host, without a user"));
        }
        // The last colon of `[::1]` is not before a port.
        let has_port = host.rfind(':').is_some_and(|colon| colon > host.rfind(']').unwrap_or(0));
        let host = if has_port { host.to_owned() } else { format!("{host}:80") };
        let path = path.split('#').next().unwrap_or("/").to_owned();
        Ok(Self { host, path })
    }
}

/// An answer's body that is on its way.
pub(super) struct Download {
    stream: BufReader<TcpStream>,
    /// Bytes in all, and how many are still to come.
    pub(super) size: u64,
    left: u64,
    stop: Stop,
}

impl Download {
    /// Asks for what is at `url`, and reads the head of the answer.
    ///
    /// # Errors
    /// [`Failure::Run`] if the server can't be reached, refuses, or does not say how long its answer is.
    pub(super) fn begin(url: &Url, stop: &Stop) -> Result<Self, Failure> {
        let stream = TcpStream::connect(&url.host).map_err(|error| failed(url, &error.to_string()))?;
        let ready = stream.set_read_timeout(Some(LOOK)).and_then(|()| {
            let host = url.host.strip_suffix(":80").unwrap_or(&url.host);
            let request = format!(
                "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ferry-lab\r\nAccept-Encoding: identity\r\n\
                 Connection: close\r\n\r\n",
                url.path
            );
            (&stream).write_all(request.as_bytes())
        });
        ready.map_err(|error| failed(url, &error.to_string()))?;
        let stream = BufReader::with_capacity(64 << 10, stream);
        let mut download = Self { stream, size: 0, left: 0, stop: stop.clone() };
        let size = download.head().and_then(|lines| length(&lines).map_err(Failure::Run));
        download.size = size
            .map_err(|failure| if let Failure::Run(why) = &failure { failed(url, why) } else { failure })?;
        download.left = download.size;
        Ok(download)
    }

    /// Fills `memory` with what comes next; less only at the end.
    ///
    /// # Errors
    /// If the connection ends early or nothing comes for long; [`Failure::Interrupted`].
    pub(super) fn fill(&mut self, memory: &mut [u8]) -> Result<usize, Failure> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(memory.len());
        let mut filled = 0;
        while filled < wanted {
            let count = self.patiently(|stream| stream.read(&mut memory[filled..wanted]))?;
            if count == 0 {
                return Err(Failure::Run("the download ended early".to_owned()));
            }
            filled += count;
        }
        self.left -= u64::try_from(filled).unwrap_or(self.left);
        Ok(filled)
    }

    /// The lines before the body.
    fn head(&mut self) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            self.patiently(|stream| stream.take(LONGEST_LINE).read_until(b'\n', &mut line))?;
            if !line.ends_with(b"\n") || lines.len() >= MOST_LINES {
                return Err(Failure::Run("it does not answer as HTTP does".to_owned()));
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    fn patiently<T>(
        &mut self,
        mut read: impl FnMut(&mut BufReader<TcpStream>) -> std::io::Result<T>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        loop {
            self.stop.check()?;
            match read(&mut self.stream) {
                Ok(value) => return Ok(value),
                Err(error) if is_to_be_repeated(&error) && begun.elapsed() < PATIENCE => {}
                Err(error) if is_to_be_repeated(&error) => {
                    return Err(Failure::Run(format!(
                        "the server said nothing for {} s",
                        PATIENCE.as_secs()
                    )));
                }
                Err(error) => return Err(Failure::Run(format!("the download failed: {error}"))),
            }
        }
    }
}

fn is_to_be_repeated(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    [WouldBlock, TimedOut, Interrupted].contains(&error.kind())
}

fn failed(url: &Url, why: &str) -> Failure {
    Failure::Run(format!("cannot download http://{}{}: {why}", url.host, url.path))
}

/// How long the body is, of the head's lines.
pub(super) fn length(head: &[String]) -> Result<u64, String> {
    let (status, fields) = head.split_first().ok_or("it does not answer as HTTP does")?;
    let field = |name: &str| {
        let found = fields.iter().filter_map(|line| line.split_once(':'));
        let mut found = found.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    if status.split(' ').nth(1) != Some("200") {
        let place = field("Location").map(|place| format!(", which names {place}")).unwrap_or_default();
        return Err(format!("the server answers '{status}'{place}"));
    }
    let length = field("Content-Length").and_then(|text| text.parse().ok());
    length.ok_or_else(|| "the server does not say how long it is".to_owned())
}
