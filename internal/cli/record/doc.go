// Package record has the commands for records: get, put, delete, records, versions, rollback.
package record
