//go:build !race

package kernel_test

const defaultSeeds = 300
