package command

import "github.com/leasehold/leasehold/internal/core/access"

// A Verb is one kind of command: a row of the table of all that can be asked of a state.
type Verb struct {
	Number Number
	Name   string // as the journal has it, where it notes the verb
	New    func() Command
	Since  Level       // the first level that has it
	Class  Class       // of nearly all of its commands: see ClassOf
	Right  access.Verb // what a caller has to be allowed; 0: it depends on what the command names
	Often  bool        // nobody changes one that is made, so that a server need not read what it wrote itself
	Quiet  string      // why the journal has no line of it by itself; empty: its note is one
}

// A Number stands for a verb in the log, once and for ever.
type Number uint8

// The numbers of verbs. They go up from 1 without a gap: add at the end only.
const (
	openSession       Number = 1
	renewSession      Number = 2
	closeSession      Number = 3
	acquire           Number = 4
	renew             Number = 5
	release           Number = 6
	change            Number = 7
	breakLease        Number = 8
	tick              Number = 9
	lead              Number = 10
	putRecord         Number = 11
	deleteRecord      Number = 12
	txn               Number = 13
	ask               Number = 14
	move              Number = 15
	define            Number = 16
	undefine          Number = 17
	acknowledge       Number = 18
	setCaps           Number = 19
	endQuarantine     Number = 20
	acknowledgeAlarm  Number = 21
	raiseTokens       Number = 22
	changeAccess      Number = 23
	setUnits          Number = 24
	drain             Number = 25
	reportUse         Number = 26
	putTask           Number = 27
	finishTask        Number = 28
	reserve           Number = 29
	cancelReservation Number = 30
)

// How often a verb comes.
const (
	often  = true
	seldom = false
)

// What a row says is plain data; what needs the fields of a command is a method of it.
var verbs = [...]Verb{
	{openSession, "open-session", fresh[OpenSession], Level1, Adds, 0, often, ""},
	{renewSession, "renew-session", fresh[RenewSession], Level1, Keeps, access.Renew, often, "its session goes on"},
	{closeSession, "close-session", fresh[CloseSession], Level1, Ends, access.Release, often, ""},
	{acquire, "acquire", fresh[Acquire], Level1, Adds, 0, often, ""},
	{renew, "renew", fresh[Renew], Level1, Keeps, access.Renew, often, "its lease goes on"},
	{release, "release", fresh[Release], Level1, Ends, access.Release, often, ""},
	{change, "change", fresh[Change], Level1, Alters, access.Change, seldom, ""},
	{breakLease, "break", fresh[Break], Level1, Alters, access.Break, often, ""},
	{tick, "tick", fresh[Tick], Level1, Internal, 0, seldom, "its events tell what time ended"},
	{lead, "lead", fresh[Lead], Level1, Internal, 0, seldom, "it is of the servers alone"},
	{putRecord, "put-record", fresh[PutRecord], Level1, Adds, access.RecordWrite, often, ""},
	{deleteRecord, "delete-record", fresh[DeleteRecord], Level1, Alters, access.RecordWrite, often, ""},
	{txn, "txn", fresh[Txn], Level1, Adds, 0, often, ""},
	{ask, "ask", fresh[Ask], Level1, Alters, access.Ask, seldom, ""},
	{move, "move", fresh[Move], Level1, Alters, access.Move, seldom, ""},
	{define, "define", fresh[Define], Level1, Adds, access.Define, seldom, ""},
	{undefine, "undefine", fresh[Undefine], Level1, Alters, access.Define, seldom, ""},
	{acknowledge, "acknowledge", fresh[Acknowledge], Level1, Alters, access.Acknowledge, seldom, ""},
	{setCaps, "set-limits", fresh[SetCaps], Level1, Governs, access.Admin, seldom, ""},
	{endQuarantine, "end-quarantine", fresh[EndQuarantine], Level1, Governs, access.Admin, seldom, ""},
	{acknowledgeAlarm, "acknowledge-alarm", fresh[AcknowledgeAlarm], Level1, Alters, access.Acknowledge, seldom, ""},
	{raiseTokens, "raise-tokens", fresh[RaiseTokens], Level1, Governs, access.Admin, seldom, ""},
	{changeAccess, "change-access", fresh[ChangeAccess], Level1, Alters, access.Admin, seldom, ""},
	{setUnits, "set-units", fresh[SetUnits], Level1, Alters, access.Define, seldom, ""},
	{drain, "drain", fresh[Drain], Level1, Alters, access.Define, seldom, ""},
	{reportUse, "report-use", fresh[ReportUse], Level1, Alters, access.Define, seldom,
		"the end of a hold tells its use"},
	{putTask, "put-task", fresh[PutTask], Level1, Adds, access.RecordWrite, seldom, ""},
	{finishTask, "finish-task", fresh[FinishTask], Level1, Ends, access.Release, seldom, ""},
	{reserve, "reserve", fresh[Reserve], Level1, Adds, 0, seldom, ""},
	{cancelReservation, "cancel-reservation", fresh[CancelReservation], Level1, Alters, 0, seldom, ""},
}

func fresh[T any]() Command { return any(new(T)).(Command) }

// Verbs returns the rows of all verbs, by their numbers.
func Verbs() []Verb { return verbs[:] }

// VerbOf returns the row of a command's verb.
func VerbOf(c Command) *Verb { return &verbs[c.number()-1] }

// VerbNumbered returns the row with a number; nil if there is none.
func VerbNumbered(n Number) *Verb {
	if n == 0 || int(n) > len(verbs) {
		return nil
	}
	return &verbs[n-1]
}

func (*OpenSession) number() Number       { return openSession }
func (*RenewSession) number() Number      { return renewSession }
func (*CloseSession) number() Number      { return closeSession }
func (*Acquire) number() Number           { return acquire }
func (*Renew) number() Number             { return renew }
func (*Release) number() Number           { return release }
func (*Change) number() Number            { return change }
func (*Break) number() Number             { return breakLease }
func (*Tick) number() Number              { return tick }
func (*Lead) number() Number              { return lead }
func (*PutRecord) number() Number         { return putRecord }
func (*DeleteRecord) number() Number      { return deleteRecord }
func (*Txn) number() Number               { return txn }
func (*Ask) number() Number               { return ask }
func (*Move) number() Number              { return move }
func (*Define) number() Number            { return define }
func (*Undefine) number() Number          { return undefine }
func (*Acknowledge) number() Number       { return acknowledge }
func (*SetCaps) number() Number           { return setCaps }
func (*EndQuarantine) number() Number     { return endQuarantine }
func (*AcknowledgeAlarm) number() Number  { return acknowledgeAlarm }
func (*RaiseTokens) number() Number       { return raiseTokens }
func (*ChangeAccess) number() Number      { return changeAccess }
func (*SetUnits) number() Number          { return setUnits }
func (*Drain) number() Number             { return drain }
func (*ReportUse) number() Number         { return reportUse }
func (*PutTask) number() Number           { return putTask }
func (*FinishTask) number() Number        { return finishTask }
func (*Reserve) number() Number           { return reserve }
func (*CancelReservation) number() Number { return cancelReservation }
