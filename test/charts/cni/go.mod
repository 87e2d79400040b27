module keelson/podnetwork

go 1.23
