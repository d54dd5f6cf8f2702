#!/bin/sh
# Writes the named queries of a lake as CSV: ./refresh.sh LAKE, such as s3://bucket/lake
set -e
folder=$(cd "$(dirname "$0")" && pwd)
for name in backlog utilisation late retry_storms cost_by_tag; do
    aioqless lake sql --lake "$1" --named "$name" --csv > "$folder/sources/lake/$name.csv"
done
cd "$folder" && npm run sources
