package azure

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/door/doortest"
)

// A block list makes little, whatever it is made of.
func TestBombs(t *testing.T) {
	const begin, end = `<?xml version="1.0" encoding="utf-8"?><BlockList>`, "</BlockList>"
	doortest.Bombs(t, maxBlockList, map[string][3]string{
		"empty lines":          {begin, "<Latest/>", end},
		"lines with an id":     {begin, "<Latest>YQ==</Latest>", end},
		"elements of no kind":  {"", "<a/>", ""},
		"deep elements":        {begin, "<Latest>", ""},
		"comments":             {begin, "<!---->", end},
		"comments in a line":   {begin + "<Latest>", "a<!---->", "</Latest>" + end},
		"comments in lines":    {begin, "<Latest>" + strings.Repeat("a<!---->", maxBlockLine) + "</Latest>", end},
		"texts in a line":      {begin + "<Latest>", "<![CDATA[a]]>", "</Latest>" + end},
		"blanks in lines":      {begin, "<Latest>" + strings.Repeat(" <?a?>", maxBlockLine) + "</Latest>", end},
		"instructions":         {"", "<?a?>", begin + end},
		"directives":           {"", "<!a>", begin + end},
		"deep directives":      {"", "<!<a>", ""},
		"open directives":      {"<!", "<", ""},
		"attributes":           {"<BlockList ", `a="" `, ">" + end},
		"attributes in lines":  {begin, `<Latest a="" b="" c=""/>`, end},
		"attributes of spaces": {"<BlockList ", `xmlns:a="" `, ">" + end},
		"escapes":              {begin + "<Latest>", "&amp;", "</Latest>" + end},
		"blanks":               {begin, " ", end},
		"a long name":          {"<", "a", "/>"},
	}, func(body []byte) { _, _ = parseBlockList(body) })
}
