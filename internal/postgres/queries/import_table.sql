CREATE TEMPORARY TABLE import (
    dimension text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, tier text COLLATE "C" NOT NULL, tier_since timestamptz
) ON COMMIT DROP
