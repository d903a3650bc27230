"""The web application: predictions of trained runs over HTTP, and the page that shows them."""
