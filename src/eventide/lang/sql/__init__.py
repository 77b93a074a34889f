def plan_sql(text, catalog): raise NotImplementedError
