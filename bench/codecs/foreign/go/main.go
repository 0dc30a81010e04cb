// Colfer in Go, in a separate process; src/codec/runtime.rs documents the protocol of its pipes.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"codec/lidar"
)

func main() {
	// The default limit of 64 Ki points is below the largest scans.
	lidar.ColferListMax = 1 << 20
	lidar.ColferSizeMax = 32 << 20
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	harness := &harness{}
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		payload := make([]byte, binary.LittleEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		answer := harness.answer(head[0], payload)
		binary.Write(out, binary.LittleEndian, uint32(len(answer)))
		out.Write(answer)
		out.Flush()
	}
}

type harness struct {
	codec   codec
	cloud   *cloud
	message []byte
	warm    [9]bool
}

func (h *harness) answer(request byte, payload []byte) []byte {
	switch request {
	case 'e':
		h.cloud = fromRecords(payload)
		h.codec.fill(h.cloud)
		h.message = append([]byte(nil), h.codec.write()...)
		h.warm = [9]bool{}
		return h.message
	case 't':
		return h.time(int(payload[0]), int(binary.LittleEndian.Uint32(payload[1:])))
	default:
		return h.read(payload)
	}
}

// time returns the seconds per call; the metrics of src/measure.rs come first, then its phases.
func (h *harness) time(metric, repeats int) []byte {
	if metric == 8 {
		h.call(7)
	}
	if !h.warm[metric] {
		h.warm[metric] = true
		for started := time.Now(); time.Since(started) < 50*time.Millisecond; {
			h.call(metric)
		}
	}
	started := time.Now()
	for range repeats {
		h.call(metric)
	}
	seconds := time.Since(started).Seconds() / float64(repeats)
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(seconds))
}

// Sinks that prevent the compiler from optimizing the calls away.
var (
	sinkCloud  *cloud
	sinkNumber float64
	sinkGuid   uint64
)

func (h *harness) call(metric int) {
	c := &h.codec
	if 1 <= metric && metric <= 4 || metric == 7 {
		if err := c.parse(h.message); err != nil {
			panic(err)
		}
	}
	switch metric {
	case 0:
		c.fill(h.cloud)
		c.write()
	case 1, 8:
		sinkCloud = c.normal()
	case 2:
		sinkNumber = c.sum()
	case 3:
		sinkGuid = c.info().guid
	case 4:
		sinkNumber = float64(c.middleY())
	case 5:
		c.fill(h.cloud)
	case 6:
		c.write()
	}
}

// read returns the outcome for any bytes, and their content.
func (h *harness) read(message []byte) (answer []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := processTime()
	verdict := byte('.')
	var to *cloud
	var sum float64
	var y float32
	func() {
		defer func() {
			if recover() != nil {
				verdict = 'p'
			}
		}()
		if h.codec.parse(message) != nil {
			verdict = 'e'
			return
		}
		to, sum, y = h.codec.normal(), h.codec.sum(), h.codec.middleY()
	}()
	spent := processTime() - started
	runtime.ReadMemStats(&after)
	if after.TotalAlloc-before.TotalAlloc > 64<<20 {
		verdict = 'g'
	}
	if spent > 50*time.Millisecond {
		verdict = 's'
	}
	answer = append(answer, verdict)
	if to == nil {
		return answer
	}
	answer = binary.LittleEndian.AppendUint64(answer, math.Float64bits(sum))
	answer = binary.LittleEndian.AppendUint32(answer, math.Float32bits(y))
	return append(answer, toRecords(to)...)
}

// processTime returns the CPU time of this process, including its garbage collector.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
