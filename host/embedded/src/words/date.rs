//! Dates as the word `dump` prints them.

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, i64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

/// A wall-clock time as `Sat Nov 21 15:32:10 UTC 2026`.
pub(super) fn utc(wall_ms: i64) -> String {
    let seconds = wall_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let weekday = usize::try_from(days.rem_euclid(7)).ok().and_then(|day| WEEKDAYS.get(day));
    let (mut year, mut day) = (1970, days);
    // Nobody's session expires in another millennium.
    while day >= length_of(year) && year < 9999 {
        day -= length_of(year);
        year += 1;
    }
    let mut month = "Dec";
    for (name, length) in MONTHS {
        let length = if name == "Feb" { length + leap_day(year) } else { length };
        month = name;
        if day < length {
            break;
        }
        day -= length;
    }
    format!(
        "{} {month} {:02} {:02}:{:02}:{:02} UTC {year}",
        weekday.unwrap_or(&""),
        day + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn leap_day(year: i64) -> i64 {
    i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
}

fn length_of(year: i64) -> i64 {
    365 + leap_day(year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_java_prints_them() {
        assert_eq!(utc(1_795_275_130_000), "Sat Nov 21 15:32:10 UTC 2026");
        assert_eq!(utc(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(utc(951_782_400_000), "Tue Feb 29 00:00:00 UTC 2000");
    }
}
