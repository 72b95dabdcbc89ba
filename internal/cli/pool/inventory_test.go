package pool

import (
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/api/v1/pools"
)

func TestCards(t *testing.T) {
	const table = "GPU-1, NVIDIA H100 80GB HBM3, 81559\nGPU-2, NVIDIA A100-SXM4-40GB, 40960\n"
	const list = `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)
  MIG 3g.20gb     Device  0: (UUID: MIG-a)
  MIG 1g.5gb      Device  1: (UUID: MIG-b)
`
	got, err := parseCards(table, instances(list))
	want := []pools.HostUnit{
		{Name: "GPU-1", Labels: map[string]string{"model": "H100", "name": "NVIDIA H100 80GB HBM3", "memory": "80"}},
		{Name: "MIG-a", Labels: map[string]string{"mig": "3g.20gb", "model": "A100", "card": "GPU-2"}},
		{Name: "MIG-b", Labels: map[string]string{"mig": "1g.5gb", "model": "A100", "card": "GPU-2"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseCards("No devices were found\n", nil); err == nil {
		t.Error("what is no table was read")
	}
	for name, want := range map[string]string{"Tesla T4": "T4", "NVIDIA GeForce RTX 4090": "4090", "NVIDIA L40S": "L40S", "Odd": "Odd"} {
		if got := model(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestReadUnits(t *testing.T) {
	got, err := readUnits(strings.NewReader("# phones\npixel-1 os=android version=15\n\niphone-3\n"))
	want := []pools.HostUnit{
		{Name: "pixel-1", Labels: map[string]string{"os": "android", "version": "15"}}, {Name: "iphone-3", Labels: map[string]string{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readUnits(strings.NewReader("a b\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a word that is no label: %v", err)
	}
}
