package cage

// Cage is what a program may reach besides what every program needs: the system's libraries, certificates and name resolution,
// figures of the machine, its own process. A path that does not exist is no error.
type Cage struct {
	// Read are files and folders to read and to execute.
	Read []string `json:"read,omitempty"`
	// Private is a folder to read and write in, but not to execute from.
	Private string `json:"private,omitempty"`
	// Open are files and folders to read, write and execute.
	Open []string `json:"open,omitempty"`
	// Ports are the TCP ports, of this machine and of others, that it may connect to. It may listen on none.
	Ports []uint16 `json:"ports,omitempty"`
	// Parent is the process that started this one. The program dies with it.
	Parent int `json:"parent"`
}
