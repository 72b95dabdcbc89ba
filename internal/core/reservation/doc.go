// Package reservation keeps what is reserved of resources, and when: a plan that never promises more than there is. It
// knows no leases and reads no clock. Moments are those of the calendar, as leaders write it into the log.
package reservation
