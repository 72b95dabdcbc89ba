package command

// A Verb is one kind of command: a row of the table of all that can be asked of a state.
type Verb struct {
	Number Number
	Name   string // as the journal has it, where it notes the verb
	New    func() Command
	Since  Level // the first level that has it
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

var verbs = [...]Verb{
	{openSession, "open-session", func() Command { return new(OpenSession) }, Level1},
	{renewSession, "renew-session", func() Command { return new(RenewSession) }, Level1},
	{closeSession, "close-session", func() Command { return new(CloseSession) }, Level1},
	{acquire, "acquire", func() Command { return new(Acquire) }, Level1},
	{renew, "renew", func() Command { return new(Renew) }, Level1},
	{release, "release", func() Command { return new(Release) }, Level1},
	{change, "change", func() Command { return new(Change) }, Level1},
	{breakLease, "break", func() Command { return new(Break) }, Level1},
	{tick, "tick", func() Command { return new(Tick) }, Level1},
	{lead, "lead", func() Command { return new(Lead) }, Level1},
	{putRecord, "put-record", func() Command { return new(PutRecord) }, Level1},
	{deleteRecord, "delete-record", func() Command { return new(DeleteRecord) }, Level1},
	{txn, "txn", func() Command { return new(Txn) }, Level1},
	{ask, "ask", func() Command { return new(Ask) }, Level1},
	{move, "move", func() Command { return new(Move) }, Level1},
	{define, "define", func() Command { return new(Define) }, Level1},
	{undefine, "undefine", func() Command { return new(Undefine) }, Level1},
	{acknowledge, "acknowledge", func() Command { return new(Acknowledge) }, Level1},
	{setCaps, "set-limits", func() Command { return new(SetCaps) }, Level1},
	{endQuarantine, "end-quarantine", func() Command { return new(EndQuarantine) }, Level1},
	{acknowledgeAlarm, "acknowledge-alarm", func() Command { return new(AcknowledgeAlarm) }, Level1},
	{raiseTokens, "raise-tokens", func() Command { return new(RaiseTokens) }, Level1},
	{changeAccess, "change-access", func() Command { return new(ChangeAccess) }, Level1},
	{setUnits, "set-units", func() Command { return new(SetUnits) }, Level1},
	{drain, "drain", func() Command { return new(Drain) }, Level1},
	{reportUse, "report-use", func() Command { return new(ReportUse) }, Level1},
	{putTask, "put-task", func() Command { return new(PutTask) }, Level1},
	{finishTask, "finish-task", func() Command { return new(FinishTask) }, Level1},
	{reserve, "reserve", func() Command { return new(Reserve) }, Level1},
	{cancelReservation, "cancel-reservation", func() Command { return new(CancelReservation) }, Level1},
}

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
