package kernel_test

import "github.com/leasehold/leasehold/internal/core"

func init() { core.New().Lend() }
