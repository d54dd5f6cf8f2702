"""A dashboard of a lake, with Streamlit.

AIOQLESS_LAKE=LAKE streamlit run dashboard.py
"""

from __future__ import annotations

import os

import pandas as pd
import streamlit as st

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.read.database import open_lake_database, read_named


def read(name: str, minutes: int = 60) -> pd.DataFrame:
    """Return the rows of a named query."""
    with open_lake_database(Lake(os.environ.get("AIOQLESS_LAKE", "lake"))) as database:
        database.execute(f"SET VARIABLE minutes = {minutes}")
        return database.execute(read_named(name)).df()


ask = st.cache_data(ttl=60)(read)  # at most once a minute, for all visitors

st.set_page_config("Jobs", layout="wide")
st.title("Jobs")
minutes = st.radio("Minutes of a point", [1, 5, 60], index=1, horizontal=True)
backlog = ask("backlog", minutes)
if queues := st.multiselect("Queues", sorted(backlog["queue"].unique())):
    backlog = backlog[backlog["queue"].isin(queues)]
for title, column in {
    "Waiting jobs, at most": "most_waiting",
    "Lag in seconds, at most": "longest_lag",
    "Workers, at least": "least_workers",
}.items():
    st.subheader(title)
    st.line_chart(backlog, x="start", y=column, color="queue")
st.subheader("Busy slots in percent")
st.line_chart(ask("utilisation", minutes), x="start", y="percent", color="version")
st.subheader("Late and expired jobs")
st.bar_chart(ask("late"), x="date", y=["late", "expired"])
st.subheader("Cost by tag")
st.bar_chart(ask("cost_by_tag"), x="tag", y="cost", horizontal=True)
