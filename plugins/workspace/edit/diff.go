package edit

// hunk says that lines [fromStart:fromEnd] became lines [toStart:toEnd].
type hunk struct{ fromStart, fromEnd, toStart, toEnd int }

// mostCells bounds the work of one comparison: what is larger counts as
// changed as a whole.
const mostCells = 1 << 20

// diff finds the lines that differ, the fewest where that is cheap to find.
func diff(from, to []string) []hunk {
	start := 0
	for start < len(from) && start < len(to) && from[start] == to[start] {
		start++
	}
	fromEnd, toEnd := len(from), len(to)
	for fromEnd > start && toEnd > start && from[fromEnd-1] == to[toEnd-1] {
		fromEnd--
		toEnd--
	}
	a, b := from[start:fromEnd], to[start:toEnd]
	switch {
	case len(a) == 0 && len(b) == 0:
		return nil
	case len(a) == 0 || len(b) == 0 || len(a)*len(b) > mostCells:
		return []hunk{{start, fromEnd, start, toEnd}}
	}
	return hunks(a, b, common(a, b), start)
}

// common fills the table of the lengths of the longest common subsequences:
// cell [i][j] is that of a[i:] and b[j:].
func common(a, b []string) [][]int32 {
	cells := make([]int32, (len(a)+1)*(len(b)+1))
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = cells[i*(len(b)+1) : (i+1)*(len(b)+1)]
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// hunks reads the differences off a table; both texts begin at line offset.
func hunks(a, b []string, table [][]int32, offset int) []hunk {
	var found []hunk
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		h := hunk{i + offset, 0, j + offset, 0}
		for (i < len(a) || j < len(b)) && (i == len(a) || j == len(b) || a[i] != b[j]) {
			if j == len(b) || (i < len(a) && table[i+1][j] >= table[i][j+1]) {
				i++
			} else {
				j++
			}
		}
		h.fromEnd, h.toEnd = i+offset, j+offset
		found = append(found, h)
	}
	return found
}
