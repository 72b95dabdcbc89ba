package kernel_test

import "testing"

// FuzzApply reads its input as choices of the writer of logs, and holds each log against
// the model and against replicas. Whatever it finds is told as a story.
func FuzzApply(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		j := writeJournal(min(1+len(data)/8, 300), chosenBy(data))
		wrong := func(j journal) error {
			if err := againstModel(j); err != nil {
				return err
			}
			return againstReplicas(t, uint64(len(data)), j)
		}
		if err := wrong(j); err != nil {
			j, err = shortest(j, err, wrong)
			t.Fatalf("%v\n%v", err, j)
		}
	})
}

// chosenBy picks as the bytes say, and the first of all when there are no more.
func chosenBy(data []byte) func(n int) int {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		choice := int(data[0])
		data = data[1:]
		return choice % n
	}
}
