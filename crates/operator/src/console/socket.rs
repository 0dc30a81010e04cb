//! One console's WebSocket: what comes is read whatever becomes of what goes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use super::bridge::{Hub, Joined, Visitor};
use super::holder::ConsoleId;

/// Lets a console into the hub for as long as its connection lives.
///
/// Reading never waits for writing: a browser that takes nothing any more is still heard.
pub(super) async fn converse(socket: WebSocket, id: ConsoleId, visitor: Visitor, hub: Arc<Hub>) {
    let (mut sink, stream) = socket.split();
    let joined = match hub.join(id, visitor) {
        Ok(joined) => joined,
        Err(refused) => {
            let _ = sink.send(close(TOO_MANY, refused.told())).await;
            return;
        }
    };
    let place = Place { number: joined.number, hub };
    tokio::select! {
        () = read(stream, &place) => {}
        () = write(sink, joined) => {}
    }
}

/// A place in the hub, left when dropped.
struct Place {
    number: u64,
    hub: Arc<Hub>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.leave(self.number);
    }
}

/// Hands on what comes, until the browser says no more: a page that is frozen, or a computer that
/// sleeps, closes nothing.
async fn read(mut stream: SplitStream<WebSocket>, place: &Place) {
    while let Ok(Some(Ok(message))) = timeout(CONSOLE_TIMEOUT, stream.next()).await {
        match message {
            Message::Binary(bytes) => place.hub.handle(place.number, &bytes),
            Message::Close(_) => return,
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

/// Sends what is due, who drives before all else, until the page connects anew.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut joined: Joined) {
    let mut standing = joined.standing.borrow_and_update().clone();
    loop {
        if !standing.is_empty() && sink.send(Message::Binary(standing)).await.is_err() {
            return;
        }
        standing = tokio::select! {
            biased;
            changed = joined.standing.changed() => match changed {
                Ok(()) => joined.standing.borrow_and_update().clone(),
                Err(_) => {
                    let _ = sink.send(close(REPLACED, "this page has connected anew")).await;
                    return;
                }
            },
            Some(bytes) = joined.messages.recv() => {
                if sink.send(Message::Binary(bytes)).await.is_err() {
                    return;
                }
                Bytes::new()
            }
        };
    }
}

fn close(code: u16, reason: &'static str) -> Message {
    Message::Close(Some(CloseFrame { code, reason: reason.into() }))
}

/// A page that runs pings four times a second.
const CONSOLE_TIMEOUT: Duration = Duration::from_secs(3);
/// WebSocket close code: the same page has connected anew.
const REPLACED: u16 = 4001;
/// WebSocket close code: there is no place for another console.
const TOO_MANY: u16 = 4002;
