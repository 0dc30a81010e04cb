module codec

go 1.22
