// Package faultfs is a file system that can be told to fail, for tests. It lies over a
// directory and looks like it, until a test says otherwise: syncs fail, hang or are slow,
// there is no room left, and the power fails.
//
// It knows what a power failure would leave: of each file what it held when it was last
// synced, of each directory the names when that was last synced. As ext4 and xfs do, it
// keeps the name of a file that was synced itself. Whatever else was written is gone.
//
// It needs Linux, FUSE and root; [Available] says whether they are there.
package faultfs
