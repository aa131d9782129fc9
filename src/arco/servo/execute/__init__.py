"""Where pipelines meet data: tables read into Spark by field id, outputs written as files, and one commit that publishes them."""
