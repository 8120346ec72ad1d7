module suite.example

go 1.26
