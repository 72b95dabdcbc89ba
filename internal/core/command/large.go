package command

import "github.com/leasehold/leasehold"

// LargeOf returns the large values that a command would name.
func LargeOf(c Command) []leasehold.Large {
	if names, ok := c.(interface{ larges() []leasehold.Large }); ok {
		return names.larges()
	}
	return nil
}

func (c *PutRecord) larges() []leasehold.Large {
	if c.Large == nil {
		return nil
	}
	return []leasehold.Large{*c.Large}
}

func (c *Txn) larges() (list []leasehold.Large) {
	for _, ops := range [][]Op{c.Then, c.Else} {
		for i := range ops {
			if ops[i].Large != nil {
				list = append(list, *ops[i].Large)
			}
			if ops[i].Txn != nil {
				list = append(list, ops[i].Txn.larges()...)
			}
		}
	}
	return list
}
