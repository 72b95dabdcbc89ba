package mcp

// What agents read of the tools. It is short, because every agent pays for all of it with every turn, and a golden
// file holds it, because agents do what it says.

// instructions are what a client tells its agent about all tools together.
const instructions = "Leases say who may work on what. Before you change something that others may change too, take " +
	"a lease on its name with lease_acquire; work only while it is held; give it back with lease_release. Any call " +
	"renews what you hold. If you are told that a lease is lost, stop."

const (
	acquireText = "Take leases on named resources, all or none, before you change them. Names: repo/NAME:path for " +
		"files, port/N, env/NAME, …; FOLDER/ claims its next task. Answers held, with a fencing token for what you " +
		"write to; or waiting, " +
		"with a ticket: position, forecast, who holds it and why. Only held may be worked on."
	checkText = "Renew your leases and keep the place of your tickets. Says for each: held, waiting or lost, how " +
		"long it lasts, and messages from people such as \"please release\"."
	releaseText = "Give leases or tickets back as soon as you are done. Says by name what was released."
	listText    = "See who holds what, why, and how many wait; at most 50."
	askText     = "Send the holder of a resource a message. Agents see it with their next lease_check."
	breakText   = "End the lease of another holder after a period, when a person told you to."
)

// The arguments, as JSON Schema.
const (
	acquireSchema = `{
		"resources": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 16},
		"reason": {"type": "string", "description": "what you will do; others see it"},
		"wait_seconds": {"type": "integer", "minimum": 0, "maximum": 20,
			"description": "wait in this call; then you get a ticket"},
		"ttl_seconds": {"type": "integer", "minimum": 10, "maximum": 14400,
			"description": "silence after which it ends; default: learned, 2 min to 4 h"},
		"slots": {"type": "integer", "minimum": 1, "description": "of each resource that is shared; default all"},
		"request_id": {"type": "string", "description": "any new text; repeat it only to retry this request"}}`
	checkSchema = `{
		"ids": {"type": "array", "items": {"type": "string"}, "maxItems": 64,
			"description": "leases or tickets; default: all of yours"},
		"wait_seconds": {"type": "integer", "minimum": 0, "maximum": 20,
			"description": "wait in this call for the turn of one ticket"}}`
	releaseSchema = `{
		"ids": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 64},
		"outcome": {"enum": ["done", "failed", "unclean"],
			"description": "of a task: done or failed, else others do it again; unclean: work stopped half-way"}}`
	listSchema = `{
		"prefix": {"type": "string", "description": "of names"},
		"holder": {"type": "string", "description": "* matches anything"}}`
	askSchema   = `{"resource": {"type": "string"}, "message": {"type": "string"}}`
	breakSchema = `{
		"resource": {"type": "string"}, "reason": {"type": "string"},
		"period_seconds": {"type": "integer", "minimum": 0, "maximum": 3600,
			"description": "for the holder to stop; default 60"}}`
)
