// Package storetest is the suite that every store passes. Run it on yours:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Config{
//			Open: func(t testing.TB) store.Store {
//				s, err := mystore.Open(t.Context(), mystore.Config{Address: server.Address(t)})
//				if err != nil {
//					t.Fatal(err)
//				}
//				return s
//			},
//			TTL:  time.Second,            // the shortest that is practical here
//			Late: 500 * time.Millisecond, // how long after its TTL a lease may still be held
//		})
//	}
//
// The suite closes what it opens, and uses names of its own for resources, so it can run in a
// namespace that is used before, afterwards, or at the same time.
//
// It tests each verb in each state of a lease; ids, tokens and time; queues; hostile names; lost,
// late and repeated messages; contenders and paused holders in front of a fenced register; and each
// power that the store lists. [Config] says what the harness can do besides: kill the store, let it
// hang, wipe it, set its clock, promote a standby that lags, take permissions away. What it cannot do
// is left out, and the last line of the output says so.
//
// In real time all cases run at once, since they wait most of the time: the whole takes about five
// times the TTL, and with Config.Full some minutes. With Config.Virtual each case runs in a
// testing/synctest bubble of its own, and time costs nothing.
package storetest
