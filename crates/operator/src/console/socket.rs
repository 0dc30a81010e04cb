//! One console's WebSocket: reading is independent of writing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use super::bridge::{Hub, Joined, Visitor};
use super::holder::ConsoleId;

/// Connects a console to the hub until either its reading or its writing ends; closes the
/// connection if the hub refuses it.
///
/// Reading never waits for writing: input of a browser that accepts no more data still counts.
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

/// A client connection in the hub, removed on drop.
struct Place {
    number: u64,
    hub: Arc<Hub>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.leave(self.number);
    }
}

/// Passes binary messages to the hub, and ignores all others, until the browser closes the
/// connection or sends nothing for 3 s, since a frozen page or a sleeping computer does not close
/// it.
async fn read(mut stream: SplitStream<WebSocket>, place: &Place) {
    while let Ok(Some(Ok(message))) = timeout(CONSOLE_TIMEOUT, stream.next()).await {
        match message {
            Message::Binary(bytes) => place.hub.handle(place.number, &bytes),
            Message::Close(_) => return,
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

/// Sends pending messages, the role message first, until sending fails, or until the page
/// reconnects; then it closes the connection with the code [`REPLACED`].
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
                    let _ = sink.send(close(REPLACED, "this page has connected again")).await;
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

/// Silence after which a console counts as gone; a running page pings four times per second.
const CONSOLE_TIMEOUT: Duration = Duration::from_secs(3);
/// WebSocket close code: the same page has reconnected.
const REPLACED: u16 = 4001;
/// WebSocket close code: the hub refused the console, because too many are connected or another
/// browser has its number.
const TOO_MANY: u16 = 4002;
