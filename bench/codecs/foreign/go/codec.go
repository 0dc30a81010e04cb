package main

import (
	"encoding/binary"
	"errors"
	"math"

	"codec/lidar"
)

// point is a point of the normal form, as in src/normal.rs.
type point struct {
	position  [3]float32
	intensity uint8
}

// info is the fixed part of the normal form.
type info struct {
	kind, timestamp, guid uint64
}

// cloud is the normal form.
type cloud struct {
	info   info
	points []point
}

// codec is Colfer, with the Go code of its compiler and its own buffers.
type codec struct {
	outgoing lidar.Cloud
	points   []lidar.Point
	buffer   []byte
	incoming *lidar.Cloud
}

var errNoInfo = errors.New("no info")

// fill converts the normal form to Colfer's structures.
func (c *codec) fill(from *cloud) {
	c.outgoing.Info = &lidar.Info{Kind: from.info.kind, Timestamp: from.info.timestamp, Guid: from.info.guid}
	if cap(c.points) < len(from.points) {
		c.points = make([]lidar.Point, len(from.points))
		c.outgoing.Points = make([]*lidar.Point, len(from.points))
	}
	c.points = c.points[:len(from.points)]
	c.outgoing.Points = c.outgoing.Points[:len(from.points)]
	for at := range from.points {
		p := &from.points[at]
		c.points[at] = lidar.Point{X: p.position[0], Y: p.position[1], Z: p.position[2], Intensity: p.intensity}
		c.outgoing.Points[at] = &c.points[at]
	}
}

// write encodes them as a message.
func (c *codec) write() []byte {
	length, err := c.outgoing.MarshalLen()
	if err != nil {
		panic(err)
	}
	if cap(c.buffer) < length {
		c.buffer = make([]byte, length)
	}
	c.buffer = c.buffer[:c.outgoing.MarshalTo(c.buffer[:cap(c.buffer)])]
	return c.buffer
}

// parse decodes a message into new Colfer structures.
func (c *codec) parse(message []byte) error {
	c.incoming = new(lidar.Cloud)
	if _, err := c.incoming.Unmarshal(message); err != nil {
		return err
	}
	if c.incoming.Info == nil {
		return errNoInfo
	}
	return nil
}

// normal converts them to a new normal form.
func (c *codec) normal() *cloud {
	to := &cloud{info: c.info(), points: make([]point, len(c.incoming.Points))}
	for at, p := range c.incoming.Points {
		to.points[at] = point{position: [3]float32{p.X, p.Y, p.Z}, intensity: p.Intensity}
	}
	return to
}

func (c *codec) info() info {
	i := c.incoming.Info
	return info{kind: i.Kind, timestamp: i.Timestamp, guid: i.Guid}
}

// sum adds in the order of src/normal.rs, so that the results are bit-identical.
func (c *codec) sum() float64 {
	const run = 4
	var lanes [4 * run]float64
	points := c.incoming.Points
	whole := len(points) / run * run
	for start := 0; start < whole; start += run {
		for slot, p := range points[start : start+run] {
			lane := lanes[4*slot : 4*slot+4 : 4*slot+4]
			lane[0] += float64(p.X)
			lane[1] += float64(p.Y)
			lane[2] += float64(p.Z)
			lane[3] += float64(p.Intensity)
		}
	}
	for _, p := range points[whole:] {
		lanes[0] += float64(p.X)
		lanes[1] += float64(p.Y)
		lanes[2] += float64(p.Z)
		lanes[3] += float64(p.Intensity)
	}
	all := 0.0
	for _, lane := range lanes {
		all += lane
	}
	i := c.info()
	return float64(i.kind) + float64(i.timestamp) + float64(i.guid) + all
}

func (c *codec) middleY() float32 {
	if points := c.incoming.Points; len(points) > 0 {
		return points[len(points)/2].Y
	}
	return 0
}

// fromRecords decodes the normal form in the harness's encoding (src/codec/records.rs).
func fromRecords(bytes []byte) *cloud {
	number := binary.LittleEndian.Uint64
	c := &cloud{info: info{number(bytes), number(bytes[8:]), number(bytes[16:])}}
	c.points = make([]point, number(bytes[24:]))
	for at := range c.points {
		record := bytes[32+16*at:]
		p := &c.points[at]
		for axis := range p.position {
			p.position[axis] = math.Float32frombits(binary.LittleEndian.Uint32(record[4*axis:]))
		}
		p.intensity = record[12]
	}
	return c
}

// toRecords encodes it.
func toRecords(c *cloud) []byte {
	bytes := make([]byte, 32+16*len(c.points))
	for at, value := range []uint64{c.info.kind, c.info.timestamp, c.info.guid, uint64(len(c.points))} {
		binary.LittleEndian.PutUint64(bytes[8*at:], value)
	}
	for at, p := range c.points {
		record := bytes[32+16*at:]
		for axis, number := range p.position {
			binary.LittleEndian.PutUint32(record[4*axis:], math.Float32bits(number))
		}
		record[12] = p.intensity
	}
	return bytes
}
