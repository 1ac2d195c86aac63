//! A minimal HTTP/1.1 client (RFC 9112): one GET over plain TCP. The answer ends by length, chunks, or the end of the
//! connection.
//!
//! Client libraries add TLS and connection pools, whose time would be measured; hence own code.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::error::Failure;
use crate::message::{quoted, reason};
use crate::stop::Stop;

/// Interval at which a waiting download checks for interrupts.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum time without data.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum length of a line, and maximum number of lines, in an answer's head.
const LONGEST_LINE: u64 = 16 << 10;
const MOST_LINES: usize = 200;
const NO_HTTP: &str = "the answer is not HTTP";

/// A URL: `http://host[:port]/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// Host with port.
    pub(super) host: String,
    pub(super) path: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// If it is not a plain HTTP URL.
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
        // The last colon of `[::1]` does not precede a port.
        let has_port = host.rfind(':').is_some_and(|colon| colon > host.rfind(']').unwrap_or(0));
        let host = if has_port { host.to_owned() } else { format!("{host}:80") };
        let path = path.split('#').next().unwrap_or("/").to_owned();
        Ok(Self { host, path })
    }
}

/// The body of an answer.
pub(super) struct Download {
    stream: BufReader<TcpStream>,
    /// Size, if the server reports it.
    pub(super) size: Option<u64>,
    rest: Rest,
    url: Url,
    stop: Stop,
}

/// Remaining part of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// This many bytes.
    Bytes(u64),
    /// This many bytes of a chunk, then further chunks.
    Chunk(u64),
    /// Everything until the server closes the connection.
    All,
}

impl Download {
    /// Requests `url` and reads the head of the answer.
    ///
    /// # Errors
    /// [`Failure::Run`] if the server cannot be reached, refuses, or sends an invalid answer.
    pub(super) fn begin(url: &Url, stop: &Stop) -> Result<Self, Failure> {
        let connected = TcpStream::connect(&url.host).and_then(|stream| {
            stream.set_read_timeout(Some(LOOK))?;
            let host = url.host.strip_suffix(":80").unwrap_or(&url.host);
            let request = format!(
                "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ferry-lab\r\nAccept-Encoding: identity\r\n\
                 Connection: close\r\n\r\n",
                url.path
            );
            (&stream).write_all(request.as_bytes())?;
            Ok(stream)
        });
        let stream = connected.map_err(|error| failed(url, &reason(&error)))?;
        let stream = BufReader::with_capacity(64 << 10, stream);
        let (url, stop) = (url.clone(), stop.clone());
        let mut download = Self { stream, size: None, rest: Rest::Bytes(0), url, stop };
        download.rest = rest(&download.head()?).map_err(|why| failed(&download.url, &why))?;
        download.size = match download.rest {
            Rest::Bytes(size) => Some(size),
            Rest::Chunk(_) | Rest::All => None,
        };
        if download.rest == Rest::Chunk(0) {
            download.next_chunk()?;
        }
        Ok(download)
    }

    /// Fills `memory` with the next bytes; fewer only at the end.
    ///
    /// # Errors
    /// If the connection ends early or stalls; [`Failure::Interrupted`].
    pub(super) fn fill(&mut self, memory: &mut [u8]) -> Result<usize, Failure> {
        let mut filled = 0;
        while filled < memory.len() && self.rest != Rest::Bytes(0) {
            let most = match self.rest {
                Rest::Bytes(left) | Rest::Chunk(left) => usize::try_from(left).unwrap_or(usize::MAX),
                Rest::All => usize::MAX,
            };
            let wanted = most.min(memory.len() - filled);
            let place = &mut memory[filled..filled + wanted];
            let count = self.patiently(|stream| stream.read(place))?;
            filled += count;
            let taken = u64::try_from(count).unwrap_or(u64::MAX);
            match &mut self.rest {
                Rest::All if count == 0 => self.rest = Rest::Bytes(0),
                Rest::All => {}
                Rest::Bytes(_) | Rest::Chunk(_) if count == 0 => return Err(self.early()),
                Rest::Bytes(left) => *left -= taken,
                Rest::Chunk(left) => {
                    *left -= taken;
                    if *left == 0 {
                        self.line()?;
                        self.next_chunk()?;
                    }
                }
            }
        }
        Ok(filled)
    }

    /// Reads the lines before the body.
    fn head(&mut self) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        loop {
            match self.line()? {
                Some(line) if line.is_empty() => return Ok(lines),
                Some(line) if lines.len() < MOST_LINES => lines.push(line),
                Some(_) | None => return Err(failed(&self.url, NO_HTTP)),
            }
        }
    }

    /// Reads a chunk's size, in hexadecimal digits before optional extensions. The last chunk is empty and followed by
    /// trailer lines.
    fn next_chunk(&mut self) -> Result<(), Failure> {
        let line = self.line()?.ok_or_else(|| self.early())?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16);
        let size =
            size.map_err(|_| failed(&self.url, &format!("a chunk's size is {}", quoted(line.as_ref()))))?;
        self.rest = if size == 0 { Rest::Bytes(0) } else { Rest::Chunk(size) };
        if size == 0 {
            self.head()?;
        }
        Ok(())
    }

    /// Reads a line without its end; `None` if no line end follows.
    fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = Vec::new();
        self.patiently(|stream| stream.take(LONGEST_LINE).read_until(b'\n', &mut line))?;
        Ok(line.ends_with(b"\n").then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
    }

    fn early(&self) -> Failure {
        failed(&self.url, "the server ended early")
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
                    let why = format!("the server sent nothing for {} s", PATIENCE.as_secs());
                    return Err(failed(&self.url, &why));
                }
                Err(error) => return Err(failed(&self.url, &reason(&error))),
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

/// Determines from the head how the body ends.
pub(super) fn rest(head: &[String]) -> Result<Rest, String> {
    let (status, fields) = head.split_first().ok_or(NO_HTTP)?;
    let field = |name: &str| {
        let found = fields.iter().filter_map(|line| line.split_once(':'));
        let mut found = found.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    if !status.starts_with("HTTP/") {
        return Err(NO_HTTP.to_owned());
    }
    if status.split(' ').nth(1) != Some("200") {
        let place = field("Location").map(|place| format!(", which names {place}")).unwrap_or_default();
        return Err(format!("the server answers '{status}'{place}"));
    }
    // Transfer-Encoding overrides Content-Length.
    match (field("Transfer-Encoding"), field("Content-Length")) {
        (Some(encoding), _) if encoding.eq_ignore_ascii_case("chunked") => Ok(Rest::Chunk(0)),
        (Some(encoding), _) => Err(format!("the server sends it as {}", quoted(encoding.as_ref()))),
        (None, Some(length)) => match length.parse() {
            Ok(length) => Ok(Rest::Bytes(length)),
            Err(_) => Err(format!("the server reports {} bytes", quoted(length.as_ref()))),
        },
        (None, None) => Ok(Rest::All),
    }
}
