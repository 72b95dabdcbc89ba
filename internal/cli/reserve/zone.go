package reserve

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/calendar"
)

// localZone returns the name of the time zone of this machine. Go knows its rules, and not its name.
func localZone(now time.Time) (string, error) {
	link, _ := os.Readlink("/etc/localtime")
	_, linked, _ := strings.Cut(link, "zoneinfo/")
	file, _ := os.ReadFile("/etc/timezone")
	for _, name := range []string{strings.TrimPrefix(os.Getenv("TZ"), ":"), now.Location().String(), linked,
		strings.TrimSpace(string(file))} {
		if zone, err := calendar.Zone(name); err == nil && sameClocks(now, zone) {
			return name, nil
		}
	}
	if sameClocks(now, time.UTC) {
		return "UTC", nil
	}
	return "", errors.New("the name of this machine's time zone is not known: give --zone, such as Europe/Berlin")
}

// sameClocks reports whether a zone shows what this machine's clock does, now and in half a year.
func sameClocks(now time.Time, zone *time.Location) bool {
	for _, at := range []time.Time{now, now.AddDate(0, 6, 0)} {
		_, here := at.Zone()
		if _, there := at.In(zone).Zone(); here != there {
			return false
		}
	}
	return true
}
