package metric

// What there is, counted at each scrape.
var (
	Leases       = gauge("leases", "Leases that are held.")
	Waiters      = gauge("waiters", "Waiters in all queues.")
	Sessions     = gauge("sessions", "Sessions that are open.")
	Namespaces   = gauge("namespaces", "Namespaces that were ever used.")
	Resources    = gauge("resources", "Resources that something is remembered of.")
	Records      = gauge("records", "Records that are kept.")
	Alarms       = gauge("alarms", "Active alarms.", "kind")
	AlarmsRaised = counter("alarms_total", "Alarms raised since the first entry of the log.", "kind")
	Quarantine   = gauge("quarantine_seconds",
		"Seconds until the quarantine after a restore ends, before which nothing is granted; 0 if there is none.")
)

// Requests, at every door.
var (
	Requests = counter("requests_total", "Requests answered, by door, verb and code (ok, or why not).", "door",
		"verb", "code")
	RequestSeconds = histogram("request_seconds",
		"Time from a request to its answer, without those that waited for a resource.", "verb")
	WaitSeconds = histogram("wait_seconds", "Time that requests waited for a resource, granted or not.")
	Waiting     = gauge("waiting_requests", "Requests held open until a resource is free.")
	Watches     = gauge("watches", "Watches that are open.")
	WatchUnsent = gauge("watch_unsent_bytes",
		"Bytes of events on their way to readers that have not taken them yet.")
	WatchesCut = counter("watches_cut_total", "Watches that were cut off because the reader was too slow.")
	Exports    = gauge("exports", "Exports of the journal that are under way.")
)

// The RESP wire.
var (
	RESPConnections = gauge("resp_connections", "Connections that speak RESP.")
	RESPCommands    = counter("resp_commands_total",
		"Commands that came by RESP, those that every connection has among them.")
	RESPProtocolErrors = counter("resp_protocol_errors_total",
		"RESP connections closed because what was sent was not RESP, or beyond a limit.")
	RESPSlow = counter("resp_slow_total",
		"RESP connections closed because the client did not finish a command, or did not read its answers, in time.")
)

// Logins, at every door.
var (
	LoginsRefused = counter("logins_refused_total", "Logins refused, by reason.", "reason")
	AccessOn      = gauge("access", "1 if access is on: there are rules who may do what.")
	TokensEnding  = gauge("access_tokens_ending", "Tokens that end within 7 days.")
)

// Connections and certificates.
var (
	Connections        = gauge("connections", "Connections that a port has.", "port")
	ConnectionsRefused = counter("connections_refused_total", "Connections for which a port had no room.", "port")
	ConnectionsEvicted = counter("connections_evicted_total",
		"Connections on which nothing was proven, closed to make room for others.", "port")
	CertificateEnds = gauge("certificate_ends_seconds", "When the certificate ends, in seconds since 1970.", "for")
)

// The log and its snapshots.
var (
	Leader           = gauge("leader", "1 if this server leads and takes commands.")
	CommandsApplied  = gauge("commands_applied", "Commands applied since the start.")
	TicksProposed    = gauge("ticks_proposed", "Ticks proposed since the start, for time alone to change something.")
	LogAppliedIndex  = gauge("log_applied_index", "Place in the log that the state has come to.")
	LogEntries       = counter("log_entries_written_total", "Entries written to the log.")
	LogWriteSeconds  = histogram("log_write_seconds", "Time to make one batch durable.")
	SnapshotSeconds  = histogram("snapshot_seconds", "Time to write one snapshot in the background.")
	SnapshotBytes    = gauge("snapshot_bytes", "Size of the newest snapshot.")
	SnapshotFailures = counter("snapshot_failures_total",
		"Snapshots that could not be written, since there was no room, or the server stopped.")
)

// The data disk.
var (
	DiskFree     = gauge("disk_free_bytes", "Room that is free on the data disk.")
	DiskReserved = gauge("disk_reserved_bytes", "Room in the reserve on the data disk.")
	DiskNeeded   = gauge("disk_needed_bytes",
		"Room that has to be free or in the reserve for anything new to be granted.")
	DiskLowRoom = gauge("disk_low_room", "1 if the data disk is low on room, and nothing new is granted or written.")
)

// The journal.
var (
	JournalBytes   = gauge("journal_bytes", "Size of the journal on disk.")
	JournalLag     = gauge("journal_lag_entries", "Entries of the log that the journal has not written yet.")
	JournalLines   = counter("journal_lines_total", "Lines written to the journal.")
	JournalDropped = counter("journal_dropped_segments_total",
		"Segments removed to keep the journal within its bound.")
	JournalLost     = counter("journal_lost_lines_total", "Lines that the journal lost because the disk was full.")
	JournalDamaged  = counter("journal_damaged_segments_total", "Segments that could not be read to their end.")
	JournalFailures = counter("journal_failures_total",
		"1 if the journal could not be written, which stops the server.")
)

// Other servers of the cluster.
var (
	PeerConnected = gauge("peer_connected", "1 if messages get through to another server.", "server")
	PeerDropped   = counter("peer_dropped_total", "Messages to another server that were lost before they were sent.",
		"server")
	PeerLag          = gauge("peer_lag_entries", "Entries of the log that another server is behind this one.", "server")
	StateComparisons = counter("state_comparisons_total",
		"How often the states of a majority of the servers were compared.")
	StatesDiffer = gauge("states_differ",
		"How many servers had another state than the majority when they were last compared.")
)
