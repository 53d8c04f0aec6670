package outputs

// ring holds the last bytes that were written to it. Its memory is taken when
// it is first needed.
type ring struct {
	size int
	buf  []byte
	next int   // where the next byte goes once buf is full
	all  int64 // bytes written
}

func (r *ring) add(p []byte) {
	r.all += int64(len(p))
	if len(p) >= r.size {
		r.buf = append(r.buf[:0], p[len(p)-r.size:]...)
		r.next = 0
		return
	}
	if free := r.size - len(r.buf); free > 0 {
		n := min(free, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		p = p[n:]
		r.next = (r.next + n) % r.size
	}
}

// parts are the bytes that are held, oldest first, in two pieces.
func (r *ring) parts() (older, newer []byte) {
	return r.buf[r.next:], r.buf[:r.next]
}

// lost is how many bytes are not held any more.
func (r *ring) lost() int64 { return r.all - int64(len(r.buf)) }
