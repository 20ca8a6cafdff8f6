"""A LangChain chain: a prompt, a model, a parser."""

import os

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4o", base_url=f"{os.environ['UPSTREAM_URL']}/v1", api_key="test")
chain = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{topic}")]) | model | StrOutputParser()


async def stream(text):
    async for word in chain.astream({"topic": text}):
        if word:
            yield word
