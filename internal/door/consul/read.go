package consul

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// keyEvents are what changes a key.
var keyEvents = []leasehold.Kind{leasehold.RecordPut, leasehold.RecordDeleted}

// key returns the key that the path names, as Consul reads it.
func (c *call) key() (string, error) {
	if c.name == "" {
		return "", nil
	}
	key := path.Clean(c.name)
	if strings.HasSuffix(c.name, "/") && !strings.HasSuffix(key, "/") {
		key += "/"
	}
	c.name = key
	switch {
	case strings.HasPrefix(key, " ") || strings.HasSuffix(key, " "):
		return "", failed(leasehold.Invalid, "invalid key name, leading/trailing spaces are not allowed")
	case key == ".." || strings.HasPrefix(key, "../"): // Clean leaves it nowhere else
		return "", failed(leasehold.Invalid, "invalid key name, path traversal is not allowed")
	}
	return key, checkKey(key)
}

// checkKey refuses a key that no record can have.
func checkKey(key string) error {
	if len(key) > leasehold.MaxName {
		return badRequest("a key of %d bytes is too long: at most %d are allowed", len(key), leasehold.MaxName)
	}
	return nil
}

// oneKey is key for a request about one key.
func (c *call) oneKey() (string, error) {
	key, err := c.key()
	if err == nil && key == "" {
		err = badRequest("Missing key name")
	}
	return key, err
}

// tokenHeader has the fencing token of the holder of a key.
const tokenHeader = "X-Leasehold-Fencing-Token"

// getKey shows one key.
func (c *call) getKey() error {
	key, err := c.oneKey()
	if err != nil {
		return err
	}
	return c.show(engine.Filter{Resource: key, Kinds: keyEvents}, func() (result, error) { return c.readKey(key) })
}

// readKey reads a key. A large value that is replaced while it is read is read anew.
func (c *call) readKey(key string) (r result, err error) {
	for range door.MaxLooks {
		if r, err = c.readKeyOnce(key); !errors.Is(err, errReplaced) {
			return r, err
		}
	}
	return r, busy(key)
}

func (c *call) readKeyOnce(key string) (r result, err error) {
	record, now, err := c.record(key)
	switch {
	case err != nil:
		return r, err
	case record == nil:
		return result{index: indexOf(now), missing: true}, nil
	}
	r.index, r.exact = indexOf(record.Mod), true
	shown, err := c.door.entry(c, record)
	if err != nil {
		return r, err
	}
	r.send = func() error {
		if record.Lease != "" {
			c.w.Header().Set(tokenHeader, strconv.FormatUint(uint64(record.Token), 10))
		}
		if !c.query.Has("raw") {
			return c.send([]entry{shown})
		}
		c.w.Header().Set("Content-Security-Policy", "sandbox")
		c.sendText(http.StatusOK, string(shown.Value))
		return nil
	}
	return r, nil
}

// record reads one record, nil if it is not there, and the revision of the namespace.
func (c *call) record(key string) (record *leasehold.Record, now leasehold.Revision, err error) {
	err = c.look(func(v core.View) {
		record, _ = v.Record(c.namespace(), key, 0)
		now = v.History(c.namespace()).Revision
	})
	return record, now, err
}

// listEntries shows all keys that begin with a prefix, with their values.
func (c *call) listEntries() error {
	prefix, err := c.key()
	if err != nil {
		return err
	}
	return c.showTree(prefix, func() (r result, err error) {
		for range door.MaxLooks {
			if r, err = c.readEntries(prefix); !errors.Is(err, errReplaced) {
				return r, err
			}
		}
		return r, busy(prefix)
	})
}

// showTree shows what is read of the keys with a prefix.
func (c *call) showTree(prefix string, read func() (result, error)) error {
	may := func() error {
		_, err := c.page(core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), KeysOnly: true, Most: 1})
		return err
	}
	return c.showList(engine.Filter{Prefix: prefix, Kinds: keyEvents}, may, read)
}

// readEntries reads all keys with a prefix and their values.
func (c *call) readEntries(prefix string) (result, error) {
	records, now, err := c.tree(prefix, false)
	if err != nil {
		return result{}, err
	}
	list := make([]entry, 0, len(records))
	size := 0
	for _, r := range records {
		shown, err := c.door.entry(c, r)
		if size += len(shown.Key) + len(shown.Value); err == nil {
			err = c.grown(listOf(prefix), size)
		}
		if err != nil {
			return result{}, err
		}
		list = append(list, shown)
	}
	return result{index: indexOf(now), missing: len(list) == 0, value: list}, nil
}

// listKeys shows the keys that begin with a prefix, up to a separator.
func (c *call) listKeys() error {
	prefix, err := c.key()
	if err != nil {
		return err
	}
	separator := c.query.Get("separator")
	if !c.query.Has("separator") {
		separator = c.query.Get("seperator") // so it was spelt once, and clients still do
	}
	return c.showTree(prefix, func() (result, error) {
		records, now, err := c.tree(prefix, true)
		if err != nil {
			return result{}, err
		}
		keys := make([]string, 0, len(records))
		for _, r := range records {
			key := upTo(r.Path, len(prefix), separator)
			if len(keys) == 0 || key != keys[len(keys)-1] {
				keys = append(keys, key)
			}
		}
		return result{index: indexOf(now), missing: len(keys) == 0 && prefix != "", value: keys}, nil
	})
}

// upTo cuts a key behind the first separator after its prefix.
func upTo(key string, prefix int, separator string) string {
	if separator == "" {
		return key
	}
	if i := strings.Index(key[prefix:], separator); i >= 0 {
		return key[:prefix+i+len(separator)]
	}
	return key
}

// tree reads all records that begin with a prefix, all as of one revision. A state is read a page at a time, so that
// nobody waits long for it; if the rest is gone from history by then, all is read anew.
func (c *call) tree(prefix string, keysOnly bool) (records []*leasehold.Record, now leasehold.Revision, err error) {
	for range door.MaxLooks {
		q := core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), KeysOnly: keysOnly}
		if records, now, err = c.treeOnce(q); !errors.Is(err, leasehold.ErrLost) {
			return records, now, err
		}
	}
	return nil, 0, busy(prefix)
}

// treeOnce reads the records of a query. The error is Lost if history no longer has its revision.
func (c *call) treeOnce(q core.RecordQuery) (all []*leasehold.Record, now leasehold.Revision, err error) {
	prefix, size := q.From, 0
	for {
		page, err := c.page(q)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, page.Records...)
		for _, r := range page.Records {
			size += len(r.Path) + len(r.Value)
		}
		if err := c.grown(listOf(prefix), size); err != nil {
			return nil, 0, err
		}
		if page.Next() == "" {
			return all, page.Revision, nil
		}
		q.From, q.Revision = page.Next()+"\x00", page.Revision
	}
}

// page reads some records. What an older revision needs of history is worked out between two looks at the state, so
// that no command waits for it.
func (c *call) page(q core.RecordQuery) (page core.RecordPage, err error) {
	if q.Revision != 0 {
		var history core.History
		if err := c.look(func(v core.View) { history = v.History(c.namespace()) }); err != nil {
			return page, err
		}
		q.Past = history.Past(q)
	}
	var failure *leasehold.Error
	if err := c.look(func(v core.View) { page, failure = v.Records(c.namespace(), q) }); err != nil {
		return page, err
	}
	if failure != nil {
		return page, failure
	}
	return page, nil
}

// errReplaced is the error of a large value that was replaced while it was read.
var errReplaced = errors.New("the value was replaced while it was read")

// entry shows a record with its value.
func (d *Door) entry(c *call, r *leasehold.Record) (entry, error) {
	shown := entryOf(r)
	kept := []byte(r.Value)
	if r.Large != nil {
		var err error
		if kept, err = d.large(c, r); err != nil {
			return shown, err
		}
	}
	value, flags := unpack(kept)
	if shown.Flags = flags; len(value) > 0 {
		shown.Value = value
	}
	return shown, nil
}

// large reads a value that is kept beside the log.
func (d *Door) large(c *call, r *leasehold.Record) ([]byte, error) {
	if r.Large.Size > maxValue+maxPacked {
		return nil, failed(leasehold.Refused, "%s has %d bytes, which is more than clients of Consul can write: "+
			"another door wrote it", r.Path, r.Large.Size)
	}
	values := d.backend.Values()
	if values == nil {
		return nil, engine.Unavailable("this server keeps no large values: ask another one")
	}
	reader, err := values.OpenValue(c.ctx, *r.Large)
	if errors.Is(err, leasehold.ErrNotFound) {
		return nil, errReplaced
	}
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}
