SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user
