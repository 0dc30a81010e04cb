//! The paper's Tables 1 and 2, as printed.

/// One column: a switchboard's packet size, and its measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Packet size from the switchboard to the vehicle, in bytes.
    pub(super) size: u64,
    /// Percent of messages below 125, 250, 375 and 500 ms: vehicle only, operator only, end to end.
    pub(super) percent: [[f64; 4]; 3],
    /// Number of messages: vehicle only, operator only, end to end.
    pub(super) messages: [u64; 3],
}

const fn column(
    size: u64,
    vehicle: [f64; 4],
    operator: [f64; 4],
    end_to_end: [f64; 4],
    messages: [u64; 3],
) -> Column {
    Column { size, percent: [vehicle, operator, end_to_end], messages }
}

/// The paper's Table 1: 400 bytes from the vehicle.
pub(super) const TABLE_1: [Column; 10] = [
    column(
        150,
        [80.4, 89.4, 92.3, 94.0],
        [99.7, 99.9, 100.0, 100.0],
        [41.6, 83.0, 88.1, 90.9],
        [34364, 24185, 24185],
    ),
    column(
        200,
        [75.7, 86.8, 90.6, 92.8],
        [98.5, 99.5, 99.7, 99.7],
        [34.5, 83.1, 88.6, 91.4],
        [21503, 19642, 19640],
    ),
    column(
        250,
        [80.0, 91.6, 94.9, 96.5],
        [99.6, 99.8, 99.9, 99.9],
        [26.2, 85.9, 92.4, 94.7],
        [48034, 35571, 35570],
    ),
    column(
        300,
        [81.9, 90.8, 93.8, 95.7],
        [98.9, 99.4, 99.7, 99.8],
        [38.3, 84.3, 89.8, 93.0],
        [59433, 40949, 40947],
    ),
    column(
        350,
        [75.7, 88.6, 93.0, 95.3],
        [96.3, 98.5, 99.4, 99.8],
        [28.4, 82.9, 90.4, 93.9],
        [44515, 42132, 42130],
    ),
    column(
        400,
        [85.7, 95.5, 97.5, 98.3],
        [99.3, 99.6, 99.7, 99.8],
        [31.9, 92.3, 96.0, 97.4],
        [123604, 96813, 96791],
    ),
    column(
        450,
        [77.5, 93.8, 96.6, 97.6],
        [96.5, 97.9, 98.5, 98.8],
        [25.1, 86.6, 93.0, 95.2],
        [53011, 36012, 35891],
    ),
    column(
        500,
        [83.7, 92.3, 95.0, 96.6],
        [99.6, 99.8, 99.8, 99.9],
        [56.8, 87.2, 92.1, 94.7],
        [97228, 81260, 81231],
    ),
    column(
        550,
        [83.1, 92.1, 95.0, 96.8],
        [99.6, 99.8, 99.9, 99.9],
        [48.1, 87.4, 92.3, 95.0],
        [95570, 69500, 69488],
    ),
    column(
        600,
        [86.7, 95.2, 96.9, 97.8],
        [99.0, 99.6, 99.8, 99.8],
        [34.9, 87.8, 92.3, 94.4],
        [79358, 33792, 33759],
    ),
];

/// The paper's Table 2: 500 bytes from the vehicle.
pub(super) const TABLE_2: [Column; 12] = [
    column(
        150,
        [86.9, 97.1, 98.3, 98.8],
        [99.3, 99.7, 99.9, 100.0],
        [24.4, 68.8, 75.4, 79.6],
        [100165, 4355, 4346],
    ),
    column(
        200,
        [66.7, 95.2, 98.2, 98.8],
        [89.0, 98.3, 99.4, 99.8],
        [7.9, 33.8, 43.1, 47.9],
        [73652, 1270, 1259],
    ),
    column(
        250,
        [95.5, 99.4, 99.7, 99.8],
        [42.2, 93.5, 98.4, 99.0],
        [3.0, 51.2, 88.0, 95.1],
        [123157, 2694, 2694],
    ),
    column(
        300,
        [98.4, 99.6, 99.8, 99.9],
        [95.6, 99.3, 99.3, 99.3],
        [49.1, 92.1, 97.5, 98.3],
        [120124, 405, 405],
    ),
    column(
        350,
        [73.7, 98.8, 99.5, 99.7],
        [83.3, 93.9, 95.5, 95.5],
        [0.4, 65.2, 81.6, 86.1],
        [99084, 245, 244],
    ),
    column(
        400,
        [92.5, 99.3, 99.7, 99.8],
        [91.1, 96.1, 96.9, 98.4],
        [19.5, 84.0, 93.8, 95.7],
        [241644, 257, 256],
    ),
    column(
        450,
        [68.7, 98.3, 99.3, 99.6],
        [72.5, 93.0, 95.3, 97.3],
        [0.0, 58.9, 82.2, 89.5],
        [105982, 258, 258],
    ),
    column(
        500,
        [65.6, 98.9, 99.7, 99.9],
        [69.9, 93.6, 96.8, 98.1],
        [0.6, 60.3, 88.5, 94.2],
        [94440, 156, 156],
    ),
    column(
        550,
        [53.5, 97.4, 99.2, 99.6],
        [87.8, 97.4, 98.7, 99.3],
        [0.7, 76.6, 92.4, 95.4],
        [95322, 304, 304],
    ),
    column(
        600,
        [84.7, 98.2, 99.3, 99.6],
        [84.7, 98.2, 99.3, 99.6],
        [3.0, 74.5, 82.8, 86.4],
        [121566, 121566, 2764],
    ),
    column(
        650,
        [55.5, 94.3, 98.4, 99.4],
        [81.6, 92.8, 94.1, 95.4],
        [0.0, 62.3, 80.8, 84.1],
        [97266, 152, 151],
    ),
    column(
        700,
        [53.2, 82.3, 88.4, 91.6],
        [99.1, 99.5, 99.7, 99.8],
        [0.6, 76.1, 84.8, 89.1],
        [47603, 39819, 39794],
    ),
];

/// Returns the mean of the columns' percentages, in the order of [`Column::percent`], because the
/// columns vary for reasons that the table does not state.
pub(super) fn mean_of_columns(columns: &[Column]) -> [[f64; 4]; 3] {
    let count = columns.len() as f64;
    std::array::from_fn(|way| {
        std::array::from_fn(|limit| {
            columns.iter().map(|column| column.percent[way][limit]).sum::<f64>() / count
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_rise_with_their_limits() {
        for column in TABLE_1.iter().chain(&TABLE_2) {
            for percent in column.percent {
                assert!(percent.is_sorted() && percent[3] <= 100.0, "{column:?}");
            }
            assert!(column.messages[2] <= column.messages[1], "{column:?}");
        }
    }
}
