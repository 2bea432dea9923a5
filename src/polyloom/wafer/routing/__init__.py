"""Colors and routes: how data pass through the routers."""
