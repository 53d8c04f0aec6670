package wire

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// filler gives every field of a value a content of its own, so that a field
// which a conversion forgets, or puts in another's place, comes back different.
type filler struct{ n int }

func (f *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	f.n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + int64(f.n))))
			return
		}
		for i := range v.NumField() {
			f.fill(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", f.n)), reflect.ValueOf(fmt.Sprint("value", f.n)))
	case reflect.String:
		v.SetString(fmt.Sprint("text", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint8:
		v.SetUint(uint64(f.n%255 + 1))
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	default:
		t.Fatalf("no filling for a %s", v.Type())
	}
}

// filled is a T with every field set.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	new(filler).fill(t, reflect.ValueOf(&v).Elem())
	return v
}

// sent is a message after a trip over the wire.
func sent[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	return got.(M)
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after the round trip:\n got %+v\nwant %+v", got, want)
	}
}

func TestFillerFillsEveryField(t *testing.T) {
	v := filled[struct {
		A string
		B []byte
		C *struct{ D uint64 }
		E bool
	}](t)
	if v.A == "" || len(v.B) == 0 || v.B[0] == 0 || v.C == nil || v.C.D == 0 || !v.E {
		t.Errorf("not every field is set: %+v", v)
	}
}
