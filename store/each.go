package store

import "sync"

// Each calls a function with each number below n, as many at the same time as atOnce says, and returns
// when all calls have. It is for stores that need a request for each lease.
func Each(n, atOnce int, call func(i int)) {
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			call(i)
		})
	}
	all.Wait()
}
