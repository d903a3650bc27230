"""The web application: trained runs behind HTTP, and the page that shows them."""
