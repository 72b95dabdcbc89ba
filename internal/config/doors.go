package config

import "strconv"

// A Door is what one door of a server adds to its settings.
type Door struct {
	Keys []Key

	// Check says what is wrong with values that are right one by one. Nil: nothing can be.
	Check func(values map[string]string) error
}

// DoorKey returns a setting of a door. Its value is in Server.Doors. check says what is wrong with
// a value; nil: any text is allowed.
func DoorKey(name, otherwise, help string, check func(value string) error) Key {
	return Key{Name: name, Scope: OfServer, Default: otherwise, Help: help, set: func(c *Config, value string) error {
		if c.Server.Doors == nil {
			c.Server.Doors = map[string]string{}
		}
		c.Server.Doors[name] = value
		if check == nil {
			return nil
		}
		return check(value)
	}}
}

// DoorSwitch returns a setting of a door that is true or false. Its value is in Server.Doors, as one of these words.
func DoorSwitch(name, otherwise, help string) Key {
	return Key{Name: name, Scope: OfServer, Default: otherwise, Help: help, Switch: true,
		set: func(c *Config, value string) error {
			var on bool
			err := setSwitch(func(*Config) *bool { return &on })(c, value)
			if c.Server.Doors == nil {
				c.Server.Doors = map[string]string{}
			}
			c.Server.Doors[name] = strconv.FormatBool(on)
			return err
		}}
}

// checkDoors says what is wrong with the settings of doors taken together.
func (s *Server) checkDoors(doors []Door) (problems []error) {
	for _, d := range doors {
		if d.Check != nil {
			problems = append(problems, d.Check(s.Doors))
		}
	}
	return problems
}
