package wire

// recordLevel is the feature level that a kind of record came with: a newer one has its case
// here.
func recordLevel(kind uint64) uint64 {
	switch kind {
	default:
		return levelFirst
	}
}

// ofNoSpace reports whether records of a kind belong to the whole state.
func ofNoSpace(kind uint64) bool {
	return kind == kindHead || kind == kindRestored || kind == kindTotals || kind == kindCalendar ||
		kind >= kindPolicy && kind <= kindCertificate || kind >= kindRevocation && kind <= kindWithdrawal
}

// isSpaceHead reports whether records of a kind begin a namespace.
func isSpaceHead(kind uint64) bool { return kind == kindSpaceHead || kind == kindSpaceChanged }
