use mio::Token;

/// Returns a token that no socket has had.
pub(super) fn fresh(next_token: &mut usize) -> Token {
    *next_token += 1;
    Token(*next_token)
}
