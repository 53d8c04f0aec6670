package dictionary

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var write = flag.Bool("write", false, "write the dictionary that the sources give")

// TestDictionary1IsWhatItsSourcesGive fails when the text or the way it is made
// was changed. The shipped file must then stay as it is: what was changed
// belongs into dictionary 2. Should a later version of the compression library
// give another result, this check of dictionary 1 has done its work.
func TestDictionary1IsWhatItsSourcesGive(t *testing.T) {
	const shipped = "../../dictionary1.zdict"
	made, err := Build1()
	if err != nil {
		t.Fatal(err)
	}
	if *write {
		if err := os.WriteFile(shipped, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, made) {
		t.Errorf("%s (%d bytes) is not what its sources give (%d bytes)", shipped, len(have), len(made))
	}
}
