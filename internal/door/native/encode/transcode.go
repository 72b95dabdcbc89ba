package encode

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Marshal writes a value by way of encoding/json: what is not asked for often enough to be written by hand.
func (b *Buffer) Marshal(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if b.form == JSON {
		b.Bytes = append(b.Bytes, text...)
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return b.transcode(decoder)
}

// transcode writes the next value of a JSON text.
func (b *Buffer) transcode(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		return b.transcodeAll(d, v == '{')
	case string:
		b.String(v)
	case bool:
		b.Bool(v)
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			b.Int(n)
		} else {
			b.String(string(v))
		}
	case nil:
		b.None()
	}
	return nil
}

// transcodeAll writes the rest of an object or a list.
func (b *Buffer) transcodeAll(d *json.Decoder, object bool) error {
	if object {
		b.Open()
	} else {
		b.OpenList()
	}
	for d.More() {
		if object {
			key, err := d.Token()
			if err != nil {
				return err
			}
			b.name(key.(string))
		} else {
			b.Next()
		}
		if err := b.transcode(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if object {
		b.Close()
	} else {
		b.CloseList()
	}
	return nil
}
