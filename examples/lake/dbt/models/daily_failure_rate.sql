select
    namespace,
    date as day,
    queue,
    completed + advanced + failed as ended,
    failed / (completed + advanced + failed) as failure_rate
from {{ source('gold', 'counts') }}
where grouping = 'queue' and completed + advanced + failed > 0
