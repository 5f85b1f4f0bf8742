SELECT dimension, id FROM pg_temp.import GROUP BY dimension, id HAVING count(*) > 1 LIMIT 1
